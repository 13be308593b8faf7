{{/* Sources decide what an edge must keep on its disk, and if it listens. */}}
{{- define "tamis.edge.listens" -}}
{{- $sources := .Values.edge.config.sources -}}
{{- if not $sources }}true{{ end -}}
{{- range $sources }}{{ if eq .kind "http" }}true{{ end }}{{ end -}}
{{- end }}

{{/* True if a source is not a Kafka topic: its readings are then kept by one edge alone. */}}
{{- define "tamis.edge.keepsReadings" -}}
{{- $sources := .Values.edge.config.sources -}}
{{- if not $sources }}true{{ end -}}
{{- range $sources }}{{ if ne .kind "kafka" }}true{{ end }}{{ end -}}
{{- end }}

{{/* The configuration file. Names under which senders reach the edge are those of its Services. */}}
{{- define "tamis.edge.config" -}}
{{- $component := dict "root" . "name" "edge" -}}
{{- $config := deepCopy .Values.edge.config -}}
{{- $hosts := splitList "," (include "tamis.serviceNames" $component) -}}
{{- if eq .Values.edge.kind "StatefulSet" -}}
{{- $service := printf "%s-pods.%s.svc.%s" (include "tamis.component" $component) .Release.Namespace .Values.clusterDomain -}}
{{- $most := ternary .Values.edge.autoscaling.maxReplicas .Values.edge.replicas .Values.edge.autoscaling.enabled -}}
{{- range $number := until (int $most) -}}
{{- $hosts = append $hosts (printf "%s-%d.%s" (include "tamis.component" $component) $number $service) -}}
{{- end -}}
{{- end -}}
{{- $http := default dict $config.http -}}
{{- $_ := set $http "hosts" (concat $hosts (default list $http.hosts)) -}}
{{- $_ := set $config "http" $http -}}
{{ toYaml $config }}
{{- end }}

{{/* The pod, the same for each kind of workload. `data` is the volume of the edge's directory. */}}
{{- define "tamis.edge.pod" -}}
{{- $component := dict "root" . "name" "edge" "values" .Values.edge "prefix" "TAMIS_EDGE" "config" (include "tamis.edge.config" .) -}}
metadata:
  {{- include "tamis.podMetadata" $component | nindent 2 }}
spec:
  automountServiceAccountToken: false
  {{- include "tamis.podSettings" $component | nindent 2 }}
  {{- include "tamis.spread" $component | nindent 2 }}
  {{- if and (eq .Values.edge.kind "DaemonSet") .Values.edge.hostPath.prepare }}
  initContainers:
    - name: prepare-data
      image: {{ include "tamis.image" $component }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      # The kubelet makes the directory for root and applies no fsGroup to it.
      command: [python, -c, "import os; os.chown('/data', {{ .Values.podSecurityContext.runAsUser }}, -1)"]
      securityContext:
        runAsUser: 0
        runAsNonRoot: false
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL], add: [CHOWN]}
      resources:
        requests: {cpu: 10m, memory: 16Mi}
        limits: {memory: 64Mi}
      volumeMounts:
        - {name: data, mountPath: /data}
  {{- end }}
  containers:
    - name: edge
      {{- include "tamis.container" $component | nindent 6 }}
      args: [--config, /etc/tamis/config/edge.yaml, --name, {{ include "tamis.edge.name" . | quote }}]
      env:
        {{- if eq .Values.edge.kind "DaemonSet" }}
        - name: NODE_NAME
          valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
        {{- else }}
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- end }}
        - name: TAMIS_DATA
          value: /data
        {{- include "tamis.commonEnv" $component | nindent 8 }}
        {{- include "tamis.secretFilesEnv" $component | nindent 8 }}
        {{- if include "tamis.edge.listens" . }}
        - name: TAMIS_EDGE_HTTP_HOST
          value: 0.0.0.0
        {{- include "tamis.serverEnv" $component | nindent 8 }}
        {{- end }}
      ports:
        {{- if include "tamis.edge.listens" . }}
        - {name: http, containerPort: 8282{{ if .Values.edge.hostPort }}, hostPort: {{ .Values.edge.hostPort }}{{ end }}}
        {{- end }}
        - {name: telemetry, containerPort: 9464}
      {{- include "tamis.probes" . | nindent 6 }}
      volumeMounts:
        - {name: config, mountPath: /etc/tamis/config, readOnly: true}
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
        {{- if include "tamis.edge.listens" . }}
        {{- include "tamis.serverMounts" $component | nindent 8 }}
        {{- end }}
        {{- include "tamis.secretFilesMounts" $component | nindent 8 }}
        {{- include "tamis.commonMounts" $component | nindent 8 }}
  volumes:
    - name: config
      configMap: {name: {{ include "tamis.component" $component }}}
    - {name: tmp, emptyDir: {}}
    {{- if eq .Values.edge.kind "DaemonSet" }}
    - name: data
      hostPath: {path: {{ .Values.edge.hostPath.path }}, type: DirectoryOrCreate}
    {{- else if eq .Values.edge.kind "Deployment" }}
    - {name: data, emptyDir: {}}
    {{- end }}
    {{- if include "tamis.edge.listens" . }}
    {{- include "tamis.serverVolumes" $component | nindent 4 }}
    {{- end }}
    {{- include "tamis.secretFilesVolumes" $component | nindent 4 }}
    {{- include "tamis.commonVolumes" $component | nindent 4 }}
{{- end }}

{{/*
The edge's name is a part of its shards' ids: it differs from those of all other edges of the fleet, and stays the
same over restarts. A pod of a StatefulSet keeps its name, an edge of a DaemonSet has its node's. Pods of a
Deployment get new names; it reads Kafka topics only, whose shards don't contain the edge's name.
*/}}
{{- define "tamis.edge.name" -}}
{{- if eq .Values.edge.kind "DaemonSet" -}}
{{ .Values.edge.namePrefix }}{{ include "tamis.component" (dict "root" . "name" "edge") }}-$(NODE_NAME)
{{- else -}}
{{ .Values.edge.namePrefix }}$(POD_NAME)
{{- end -}}
{{- end }}
