{{/*
Headless Service of a component's telemetry port, for Prometheus and for `helm test`. It lists pods that aren't
ready, too: their metrics say why.
*/}}
{{- define "tamis.telemetryService" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "tamis.component" . }}-telemetry
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "tamis.labels" . | nindent 4 }}
    tamis/telemetry: "true"
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "tamis.selectorLabels" . | nindent 4 }}
  ports:
    - {name: telemetry, port: 9464, targetPort: telemetry}
{{- end }}
