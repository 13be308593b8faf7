{{- define "tamis.joiner.onVolume" -}}
{{- if not .Values.joiner.checkpoint }}true{{ end -}}
{{- end }}

{{- define "tamis.joiner.onKubernetes" -}}
{{- if eq .Values.joiner.master "kubernetes" }}true{{ end -}}
{{- end }}

{{/* Claim of the checkpoint. A template of a StatefulSet names its claims data-<pod>. */}}
{{- define "tamis.joiner.claim" -}}
{{- default (printf "data-%s-0" (include "tamis.component" (dict "root" . "name" "joiner"))) .Values.joiner.persistence.existingClaim -}}
{{- end }}

{{- define "tamis.joiner.secretEnv" -}}
{{- range .Values.joiner.spark.secretEnv }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: {name: {{ .existingSecret }}, key: {{ .key }}}
{{- end }}
{{- end }}

{{/*
Spark's properties. Those that the joiner sets from TAMIS_JOINER_… are not among them. Properties of the values
come last.
*/}}
{{- define "tamis.joiner.properties" -}}
{{- $executor := dict "root" . "name" "joiner-executor" -}}
spark.kubernetes.namespace {{ .Release.Namespace }}
spark.kubernetes.container.image {{ include "tamis.image" (dict "root" . "values" .Values.joiner) }}
spark.kubernetes.container.image.pullPolicy {{ .Values.image.pullPolicy }}
# Executor pods belong to the driver's pod and are deleted with it.
spark.kubernetes.driver.pod.name {{ include "tamis.component" (dict "root" . "name" "joiner") }}-0
spark.kubernetes.executor.podNamePrefix {{ include "tamis.component" $executor }}
spark.kubernetes.executor.podTemplateFile /etc/tamis/spark/executor.yaml
spark.kubernetes.executor.podTemplateContainerName executor
spark.kubernetes.authenticate.executor.serviceAccountName {{ include "tamis.component" $executor }}
# Spark then needs rights for pods only, and none for config maps, services and claims.
spark.kubernetes.executor.disableConfigMap true
spark.kubernetes.driver.service.deleteOnTermination false
spark.kubernetes.driver.ownPersistentVolumeClaim false
spark.kubernetes.driver.reusePersistentVolumeClaim false
spark.executor.memoryOverhead {{ .Values.joiner.spark.executorMemoryOverhead }}
spark.blockManager.port {{ .Values.joiner.spark.blockManagerPort }}
{{- range $name, $value := .Values.joiner.spark.properties }}
{{ $name }} {{ $value }}
{{- end }}
{{- end }}

{{/* Template of executor pods. Spark adds name, arguments, resources and most variables. */}}
{{- define "tamis.joiner.executor" -}}
{{- $component := dict "root" . "name" "joiner-executor" "values" .Values.joiner -}}
{{- $joiner := dict "root" . "name" "joiner" "values" .Values.joiner -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "tamis.selectorLabels" $component | nindent 4 }}
    {{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "tamis.component" $component }}
  automountServiceAccountToken: false
  {{- include "tamis.podSettings" (dict "root" . "values" (omit .Values.joiner "affinity")) | nindent 2 }}
  {{- include "tamis.spread" (merge (dict "values" (dict "spread" true)) $component) | nindent 2 }}
  containers:
    - name: executor
      image: {{ include "tamis.image" $joiner }}
      command: [python, -m, tamis_joiner.spark.processes.kubernetes_executor]
      workingDir: /tmp
      securityContext:
        {{- toYaml .Values.containerSecurityContext | nindent 8 }}
      {{- if .Values.joiner.spark.secretEnv }}
      env:
        {{- include "tamis.joiner.secretEnv" . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- if include "tamis.joiner.onVolume" . }}
        - {name: data, mountPath: /data}
        {{- end }}
        {{- include "tamis.tablesMount" . | nindent 8 }}
        {{- include "tamis.commonMounts" $joiner | nindent 8 }}
  volumes:
    - {name: tmp, emptyDir: {}}
    {{- if include "tamis.joiner.onVolume" . }}
    - name: data
      persistentVolumeClaim: {claimName: {{ include "tamis.joiner.claim" . }}}
    {{- end }}
    {{- include "tamis.tablesVolume" . | nindent 4 }}
    {{- include "tamis.commonVolumes" $joiner | nindent 4 }}
{{- end }}
