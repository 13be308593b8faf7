{{/* Parts of the network policies, with the chart's root. */}}
{{- define "tamis.network.kafka" -}}
- ports:
    {{- $ports := list }}
    {{- range splitList "," .Values.kafka.bootstrap }}
    {{- $ports = append $ports (regexFind "[0-9]+$" .) }}
    {{- end }}
    {{- range default (uniq $ports) .Values.networkPolicy.kafkaPorts }}
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

{{/*
The ports that a configuration names, with the usual ones of schemes, sources and sinks. `texts` is a list of anything that
may name a port, and `configs` has sources or sinks.
*/}}
{{- define "tamis.network.named" -}}
{{- $text := toJson .texts -}}
{{- $ports := list -}}
{{- range regexFindAll "\"port\":\"?[0-9]+" $text -1 }}{{ $ports = append $ports (regexFind "[0-9]+$" .) }}{{ end -}}
{{- range regexFindAll "[A-Za-z0-9.\\]-]:[0-9]{2,5}[\"/,?]" $text -1 }}{{ $ports = append $ports (regexFind "[0-9]{2,5}" (regexFind ":.*" .)) }}{{ end -}}
{{- $usual := dict "https://[^:\"/]+[\"/]" "443" "http://[^:\"/]+[\"/]" "80" "s3a?://" "443" "\"kind\":\"(slack|pagerduty)\"" "443" "\"url\":\"[$][{]" "443" -}}
{{- range $pattern, $port := $usual }}{{ if regexMatch $pattern $text }}{{ $ports = append $ports $port }}{{ end }}{{ end -}}
{{- range .configs -}}
{{- if not (hasKey . "port") -}}
{{- if eq .kind "mqtt" }}{{ $ports = append $ports "1883" }}{{ end -}}
{{- if eq .kind "email" }}{{ $ports = append $ports "587" }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with uniq $ports | sortAlpha }}
- ports:
    {{- range . }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}
{{- end }}

{{/* What a service needs: names, Kafka, the ports that its values name, and what the values add for all and for it. */}}
{{- define "tamis.network.egress" -}}
{{- $policy := .root.Values.networkPolicy -}}
{{ include "tamis.network.dns" .root }}
{{ include "tamis.network.kafka" .root }}
{{- if $policy.named }}
{{- $texts := append .texts .values.extraEnv }}
{{- if hasPrefix "SASL" .root.Values.kafka.securityProtocol }}{{ $texts = append $texts .root.Values.kafka.sasl.oauthTokenUrl }}{{ end }}
{{- include "tamis.network.named" (dict "texts" $texts "configs" (default list .configs)) }}
{{- end }}
{{- with $policy.egress }}
{{ toYaml . }}
{{- end }}
{{- with .more }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Who may call an HTTP server, as the rest of a rule of ingress: `clients` if there are any. */}}
{{- define "tamis.network.clients" -}}
{{- if .clients }}
from:
  {{- toYaml .clients | nindent 2 }}
{{- else if or (ne .values.service.type "ClusterIP") .values.hostPort }}
{{- else if .values.tls.proxy }}
from:
  - namespaceSelector: {}
{{- else }}
from:
  - podSelector: {}
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
