{{/*
Parts that the pods of all services have in common. They take (dict "root" $ "name" … "values" …).
*/}}
{{/* Without the labels of chart and version, an upgrade of the chart alone restarts no pod. */}}
{{- define "tamis.podMetadata" -}}
labels:
  {{- include "tamis.selectorLabels" . | nindent 2 }}
  {{- with .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  kubectl.kubernetes.io/default-container: {{ .name }}
  {{- with .config }}
  # Pods are replaced when their configuration changes.
  tamis/config-digest: {{ sha256sum . }}
  {{- end }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "tamis.podSettings" -}}
enableServiceLinks: false
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "tamis.spread" -}}
{{- if .values.spread -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "tamis.selectorLabels" . | nindent 8 }}
{{- end }}
{{- end }}

{{- define "tamis.container" -}}
image: {{ include "tamis.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.containerSecurityContext | nindent 2 }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
{{- end }}

{{/* The telemetry server answers without TLS and tokens, on a port of its own. */}}
{{- define "tamis.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: telemetry}
  periodSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: telemetry}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: telemetry}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{- define "tamis.commonEnv" -}}
- name: TAMIS_LOG_LEVEL
  value: {{ .root.Values.log.level }}
- name: TAMIS_LOG_FORMAT
  value: {{ .root.Values.log.format }}
- name: TAMIS_TELEMETRY_HOST
  value: 0.0.0.0
- name: TAMIS_TELEMETRY_PORT
  value: "9464"
{{- with .root.Values.functions }}
- name: TAMIS_FUNCTIONS
  value: {{ . | quote }}
{{- end }}
{{ include "tamis.kafkaEnv" . }}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A server's certificate; `prefix` is TAMIS_REGISTRY or TAMIS_EDGE. */}}
{{- define "tamis.serverEnv" -}}
- name: {{ .prefix }}_TOKENS_FILE
  value: /etc/tamis/tokens/{{ .values.tokens.key }}
{{- if .values.tls.proxy }}
- name: {{ .prefix }}_TLS
  value: proxy
{{- else }}
- name: {{ .prefix }}_TLS_CERTIFICATE
  value: /etc/tamis/tls/tls.crt
- name: {{ .prefix }}_TLS_KEY
  value: /etc/tamis/tls/tls.key
{{- end }}
{{- end }}

{{- define "tamis.serverMounts" -}}
- name: tokens
  mountPath: /etc/tamis/tokens
  readOnly: true
{{- if not .values.tls.proxy }}
- name: tls
  mountPath: /etc/tamis/tls
  readOnly: true
{{- end }}
{{- end }}

{{/* Secrets are readable for the pod's group only: the services warn of files that all users may read. */}}
{{- define "tamis.serverVolumes" -}}
- name: tokens
  secret:
    secretName: {{ .values.tokens.existingSecret }}
    defaultMode: 0440
{{- if not .values.tls.proxy }}
- name: tls
  secret:
    secretName: {{ .values.tls.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* Secrets that a configuration file names as ${NAME}: NAME_FILE has the path. */}}
{{- define "tamis.secretFilesEnv" -}}
{{- range .values.secretFiles }}
- name: {{ .name }}_FILE
  value: /etc/tamis/secrets/{{ .name }}/{{ .key }}
{{- end }}
{{- end }}

{{- define "tamis.secretFilesMounts" -}}
{{- range .values.secretFiles }}
- name: secret-{{ .name | lower | replace "_" "-" }}
  mountPath: /etc/tamis/secrets/{{ .name }}
  readOnly: true
{{- end }}
{{- end }}

{{- define "tamis.secretFilesVolumes" -}}
{{- range .values.secretFiles }}
- name: secret-{{ .name | lower | replace "_" "-" }}
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      - {key: {{ .key }}, path: {{ .key }}}
{{- end }}
{{- end }}

{{- define "tamis.tablesMount" -}}
{{- if .Values.tables.volume -}}
- {name: tables, mountPath: /tables, readOnly: true}
{{- end }}
{{- end }}

{{- define "tamis.tablesVolume" -}}
{{- if .Values.tables.volume -}}
- name: tables
  {{- toYaml .Values.tables.volume | nindent 2 }}
{{- end }}
{{- end }}
