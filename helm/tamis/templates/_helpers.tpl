{{/*
Names and labels. A component's helpers take (dict "root" $ "name" "registry" "values" .Values.registry).
*/}}
{{- define "tamis.chartName" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* 40 characters leave room for the endings: names of Services and pods have at most 63. */}}
{{- define "tamis.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "tamis.chartName" .) .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "tamis.chartName" .) | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "tamis.component" -}}
{{ include "tamis.fullname" .root }}-{{ .name }}
{{- end }}

{{- define "tamis.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tamis.chartName" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "tamis.labels" -}}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tamis
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{ include "tamis.selectorLabels" . }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tamis.metadata" -}}
name: {{ include "tamis.component" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "tamis.labels" . | nindent 2 }}
{{- end }}

{{- define "tamis.image" -}}
{{- $tag := printf ":%s" (default .root.Chart.AppVersion .root.Values.image.tag) -}}
{{- $version := empty .values.image.digest | ternary $tag (printf "@%s" .values.image.digest) -}}
{{- with .root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .values.image.repository }}{{ $version }}
{{- end }}

{{/* The names of a component's Service within the cluster, as YAML lists take them. */}}
{{- define "tamis.serviceNames" -}}
{{- $service := printf "%s.%s" (include "tamis.component" .) .root.Release.Namespace -}}
{{ include "tamis.component" . }},{{ $service }},{{ $service }}.svc,{{ $service }}.svc.{{ .root.Values.clusterDomain }}
{{- end }}
