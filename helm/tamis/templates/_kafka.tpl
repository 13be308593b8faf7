{{/*
Connection to Kafka: environment, mounts and volumes of a component. A secret of the component comes before the
common secret; with Strimzi's users the secret of the component's KafkaUser comes before both.
*/}}
{{- define "tamis.kafka.sasl" -}}
{{- if hasPrefix "SASL" .root.Values.kafka.securityProtocol }}true{{ end -}}
{{- end }}

{{- define "tamis.kafka.tls" -}}
{{- if hasSuffix "SSL" .root.Values.kafka.securityProtocol }}true{{ end -}}
{{- end }}

{{- define "tamis.kafka.user" -}}
{{- if .root.Values.strimzi.users.enabled }}{{ include "tamis.component" . }}{{ end -}}
{{- end }}

{{- define "tamis.kafka.saslSecret" -}}
{{- coalesce (include "tamis.kafka.user" .) .values.kafka.saslSecret .root.Values.kafka.sasl.existingSecret | default "" -}}
{{- end }}

{{- define "tamis.kafka.clientSecret" -}}
{{- $user := ternary (include "tamis.kafka.user" .) "" (eq .root.Values.strimzi.users.authentication "tls") -}}
{{- coalesce $user .values.kafka.clientSecret .root.Values.kafka.tls.clientSecret | default "" -}}
{{- end }}

{{- define "tamis.kafka.caSecret" -}}
{{- $ofCluster := ternary (printf "%s-cluster-ca-cert" .root.Values.strimzi.cluster) "" (ne .root.Values.strimzi.cluster "") -}}
{{- coalesce .root.Values.kafka.tls.caSecret $ofCluster | default "" -}}
{{- end }}

{{/* Strimzi names the keys of a user's secret. */}}
{{- define "tamis.kafka.certificateKey" -}}
{{- if .root.Values.strimzi.users.enabled }}user.crt{{ else }}{{ .root.Values.kafka.tls.certificateKey }}{{ end -}}
{{- end }}
{{- define "tamis.kafka.privateKeyKey" -}}
{{- if .root.Values.strimzi.users.enabled }}user.key{{ else }}{{ .root.Values.kafka.tls.privateKeyKey }}{{ end -}}
{{- end }}
{{- define "tamis.kafka.passwordKey" -}}
{{- if .root.Values.strimzi.users.enabled }}password{{ else }}{{ .root.Values.kafka.sasl.passwordKey }}{{ end -}}
{{- end }}

{{- define "tamis.kafkaEnv" -}}
{{- $kafka := .root.Values.kafka -}}
{{- $oauth := eq $kafka.sasl.mechanism "OAUTHBEARER" -}}
- name: TAMIS_KAFKA_BOOTSTRAP
  value: {{ $kafka.bootstrap | quote }}
- name: TAMIS_KAFKA_SECURITY_PROTOCOL
  value: {{ $kafka.securityProtocol }}
{{- if include "tamis.kafka.sasl" . }}
- name: TAMIS_KAFKA_SASL_MECHANISM
  value: {{ $kafka.sasl.mechanism }}
- name: {{ $oauth | ternary "TAMIS_KAFKA_OAUTH_CLIENT_ID" "TAMIS_KAFKA_SASL_USERNAME" }}
  {{- if .root.Values.strimzi.users.enabled }}
  value: {{ include "tamis.kafka.user" . }}
  {{- else }}
  valueFrom:
    secretKeyRef:
      name: {{ include "tamis.kafka.saslSecret" . }}
      key: {{ $kafka.sasl.usernameKey }}
  {{- end }}
- name: {{ $oauth | ternary "TAMIS_KAFKA_OAUTH_CLIENT_SECRET_FILE" "TAMIS_KAFKA_SASL_PASSWORD_FILE" }}
  value: /etc/tamis/kafka-sasl/{{ include "tamis.kafka.passwordKey" . }}
{{- if $oauth }}
- name: TAMIS_KAFKA_OAUTH_TOKEN_URL
  value: {{ $kafka.sasl.oauthTokenUrl | quote }}
{{- if $kafka.sasl.oauthCaSecret }}
- name: TAMIS_KAFKA_OAUTH_CA
  value: /etc/tamis/kafka-oauth-ca/ca.crt
{{- end }}
{{- with $kafka.sasl.oauthScope }}
- name: TAMIS_KAFKA_OAUTH_SCOPE
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if include "tamis.kafka.tls" . }}
{{- if include "tamis.kafka.caSecret" . }}
- name: TAMIS_KAFKA_SSL_CA
  value: /etc/tamis/kafka-ca/{{ $kafka.tls.caKey }}
{{- end }}
{{- if include "tamis.kafka.clientSecret" . }}
- name: TAMIS_KAFKA_SSL_CERTIFICATE
  value: /etc/tamis/kafka-client/{{ include "tamis.kafka.certificateKey" . }}
- name: TAMIS_KAFKA_SSL_KEY
  value: /etc/tamis/kafka-client/{{ include "tamis.kafka.privateKeyKey" . }}
{{- end }}
{{- end }}
{{- end }}

{{/* (dict "root" … "name" … "values" …): pairs of a volume's name and its secret, as JSON. */}}
{{- define "tamis.kafkaSecrets" -}}
{{- $secrets := dict -}}
{{- if include "tamis.kafka.sasl" . }}
{{- $_ := set $secrets "kafka-sasl" (include "tamis.kafka.saslSecret" .) }}
{{- if eq .root.Values.kafka.sasl.mechanism "OAUTHBEARER" }}
{{- $_ := set $secrets "kafka-oauth-ca" .root.Values.kafka.sasl.oauthCaSecret }}
{{- end }}
{{- end }}
{{- if include "tamis.kafka.tls" . }}
{{- $_ := set $secrets "kafka-ca" (include "tamis.kafka.caSecret" .) }}
{{- $_ := set $secrets "kafka-client" (include "tamis.kafka.clientSecret" .) }}
{{- end }}
{{- toJson $secrets -}}
{{- end }}

{{/* Mounts that every service has: Kafka's secrets, and those of the values. */}}
{{- define "tamis.commonMounts" -}}
{{ include "tamis.kafkaMounts" . }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tamis.commonVolumes" -}}
{{ include "tamis.kafkaVolumes" . }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tamis.kafkaMounts" -}}
{{- range $name, $secret := include "tamis.kafkaSecrets" . | fromJson }}
{{- if $secret }}
- name: {{ $name }}
  mountPath: /etc/tamis/{{ $name }}
  readOnly: true
{{- end }}
{{- end }}
{{- end }}

{{- define "tamis.kafkaVolumes" -}}
{{- range $name, $secret := include "tamis.kafkaSecrets" . | fromJson }}
{{- if $secret }}
- name: {{ $name }}
  secret:
    secretName: {{ $secret }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- end }}
