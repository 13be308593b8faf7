{{/* Parts of the network policies, with the chart's root. */}}
{{- define "tamis.network.kafka" -}}
- ports:
    {{- range .Values.networkPolicy.kafkaPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with .Values.networkPolicy.kafka }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "tamis.network.dns" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end }}

{{/* What every service needs: names, Kafka, and what the values add for all. */}}
{{- define "tamis.network.egress" -}}
{{ include "tamis.network.dns" . }}
{{ include "tamis.network.kafka" . }}
{{- with .Values.networkPolicy.egress }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tamis.network.telemetry" -}}
- ports:
    - {protocol: TCP, port: 9464}
  from:
    {{- toYaml .Values.networkPolicy.prometheus | nindent 4 }}
    # The pod of `helm test`.
    - podSelector:
        matchLabels:
          {{- include "tamis.selectorLabels" (dict "root" . "name" "test") | nindent 10 }}
{{- end }}

{{- define "tamis.network.peer" -}}
- podSelector:
    matchLabels:
      {{- include "tamis.selectorLabels" . | nindent 6 }}
{{- end }}

{{- define "tamis.network.head" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "tamis.metadata" . | nindent 2 }}
spec:
  policyTypes: [Ingress, Egress]
  podSelector:
    matchLabels:
      {{- include "tamis.selectorLabels" . | nindent 6 }}
{{- end }}
