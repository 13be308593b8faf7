{{/* KEDA's objects, with the secrets of the component that is scaled. */}}
{{- define "tamis.keda.authentication" -}}
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata:
  {{- include "tamis.metadata" . | nindent 2 }}
spec:
  secretTargetRef:
    {{- if and (include "tamis.kafka.sasl" .) (not .root.Values.strimzi.users.enabled) }}
    - {parameter: username, name: {{ include "tamis.kafka.saslSecret" . }}, key: {{ .root.Values.kafka.sasl.usernameKey }}}
    {{- end }}
    {{- if include "tamis.kafka.sasl" . }}
    - {parameter: password, name: {{ include "tamis.kafka.saslSecret" . }}, key: {{ include "tamis.kafka.passwordKey" . }}}
    {{- end }}
    {{- if and (include "tamis.kafka.tls" .) (include "tamis.kafka.caSecret" .) }}
    - {parameter: ca, name: {{ include "tamis.kafka.caSecret" . }}, key: {{ .root.Values.kafka.tls.caKey }}}
    {{- end }}
    {{- if and (include "tamis.kafka.tls" .) (include "tamis.kafka.clientSecret" .) }}
    - {parameter: cert, name: {{ include "tamis.kafka.clientSecret" . }}, key: {{ include "tamis.kafka.certificateKey" . }}}
    - {parameter: key, name: {{ include "tamis.kafka.clientSecret" . }}, key: {{ include "tamis.kafka.privateKeyKey" . }}}
    {{- end }}
{{- end }}

{{/* One trigger for each topic and consumer group: `triggers` is a list of topic, group, bootstrap. */}}
{{- define "tamis.keda.scaledObject" -}}
{{- $mechanisms := dict "PLAIN" "plaintext" "SCRAM-SHA-256" "scram_sha256" "SCRAM-SHA-512" "scram_sha512" -}}
{{- $kafka := .root.Values.kafka -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "tamis.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: {{ .kind }}
    name: {{ include "tamis.component" . }}
  minReplicaCount: {{ .values.autoscaling.minReplicas }}
  maxReplicaCount: {{ .values.autoscaling.maxReplicas }}
  triggers:
    {{- range .triggers }}
    - type: kafka
      metadata:
        bootstrapServers: {{ default $kafka.bootstrap .bootstrap }}
        topic: {{ .topic }}
        consumerGroup: {{ .group }}
        lagThreshold: {{ $.values.autoscaling.lagThreshold | int | quote }}
        # A group without an offset has read nothing yet.
        offsetResetPolicy: earliest
        {{- if include "tamis.kafka.sasl" $ }}
        sasl: {{ get $mechanisms $kafka.sasl.mechanism }}
        {{- end }}
        tls: {{ ternary "enable" "disable" (ne (include "tamis.kafka.tls" $) "") }}
      authenticationRef:
        name: {{ include "tamis.component" $ }}
    {{- end }}
{{- end }}
