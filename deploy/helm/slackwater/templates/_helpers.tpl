{{- define "slackwater.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "slackwater.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "slackwater.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "slackwater.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "slackwater.selector" -}}
app.kubernetes.io/name: {{ include "slackwater.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: hub
{{- end -}}

{{- define "slackwater.labels" -}}
{{ include "slackwater.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "slackwater.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "slackwater.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "slackwater.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{- define "slackwater.configMap" -}}
{{ .Values.existingConfigMap | default (include "slackwater.fullname" .) }}
{{- end -}}

{{- define "slackwater.claim" -}}
{{ .Values.persistence.existingClaim | default (include "slackwater.fullname" .) }}
{{- end -}}

{{/* Whether the configuration names a bucket for the state; one of existingConfigMap is not seen. */}}
{{- define "slackwater.bucket" -}}
{{- if regexMatch "(?m)^\\s*state\\s*=\\s*[\"']s3://" .Values.config }}true{{ end -}}
{{- end -}}

{{/* Whether the state is on a volume that outlives the pod. */}}
{{- define "slackwater.volume" -}}
{{- if and .Values.persistence.enabled (not (include "slackwater.bucket" .)) }}true{{ end -}}
{{- end -}}

{{/* What cannot be said by the schema: values that do not go together. */}}
{{- define "slackwater.check" -}}
{{- if not (or .Values.config .Values.existingConfigMap) -}}
{{- fail "the hub has no configuration: give --set-file config=hub.toml, or existingConfigMap" -}}
{{- end -}}
{{- $path := regexFind "(?m)^\\s*state\\s*=\\s*[\"'][/~][^\"']*" .Values.config -}}
{{- if and $path (not (contains "/var/lib/slackwater" $path)) (not .Values.extraVolumeMounts) -}}
{{- fail "hub.state is on no volume: leave it relative, or name a folder in /var/lib/slackwater" -}}
{{- end -}}
{{- $bucket := include "slackwater.bucket" . -}}
{{- if and $bucket .Values.standby.enabled -}}
{{- fail "a bucket has no lock that two pods share: standby.enabled is for a state on a volume" -}}
{{- end -}}
{{- $shared := and (not $bucket) (or .Values.standby.enabled (eq .Values.mode "sparkapplication")) -}}
{{- $claims := and .Values.persistence.enabled (not .Values.persistence.existingClaim) -}}
{{- if and $shared $claims (not (has "ReadWriteMany" .Values.persistence.accessModes)) -}}
{{- fail "several pods share the state: persistence.accessModes must be [ReadWriteMany]" -}}
{{- end -}}
{{- if and $shared (not .Values.persistence.enabled) -}}
{{- fail "several pods share the state: persistence.enabled must be true" -}}
{{- end -}}
{{- if and .Values.standby.enabled (eq .Values.mode "sparkapplication") -}}
{{- fail "the Spark operator starts one driver: standby.enabled is for mode deployment" -}}
{{- end -}}
{{- if not .Values.existingSecret -}}
{{- fail "the port is open to the cluster: existingSecret must hold SLACKWATER_HTTP__TOKEN" -}}
{{- end -}}
{{- end -}}

{{- define "slackwater.env" -}}
- name: SLACKWATER_CONFIG
  value: /etc/slackwater/hub.toml
- name: SLACKWATER_STATE_FOLDER
  value: /var/lib/slackwater
- name: SLACKWATER_HTTP__HOST
  value: 0.0.0.0
- name: SLACKWATER_HTTP__PORT
  value: {{ .Values.http.port | quote }}
- name: SLACKWATER_HTTP__NAMES
  {{- $name := include "slackwater.fullname" . }}
  {{- $inside := printf "%s.%s" $name .Release.Namespace }}
  value: {{ list $name $inside (printf "%s.svc" $inside) | toJson | quote }}
{{- if .Values.existingSecret }}
- name: SLACKWATER_SECRETS
  value: /run/secrets/slackwater
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "slackwater.volumes" -}}
- name: config
  configMap:
    name: {{ include "slackwater.configMap" . }}
- name: state
{{- if include "slackwater.volume" . }}
  persistentVolumeClaim:
    claimName: {{ include "slackwater.claim" . }}
{{- else }}
  emptyDir: {}
{{- end }}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.scratch.size }}
{{- if .Values.existingSecret }}
- name: secrets
  secret:
    secretName: {{ .Values.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "slackwater.volumeMounts" -}}
- name: config
  mountPath: /etc/slackwater
  readOnly: true
- name: state
  mountPath: /var/lib/slackwater
- name: tmp
  mountPath: /tmp
{{- if .Values.existingSecret }}
- name: secrets
  mountPath: /run/secrets/slackwater
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "slackwater.probes" -}}
startupProbe:
  httpGet: { path: /livez, port: http }
  {{- toYaml .Values.probes.startup | nindent 2 }}
livenessProbe:
  httpGet: { path: /livez, port: http }
  {{- toYaml .Values.probes.liveness | nindent 2 }}
readinessProbe:
  httpGet: { path: /readyz, port: http }
  {{- toYaml .Values.probes.readiness | nindent 2 }}
{{- end -}}

{{- define "slackwater.podAnnotations" -}}
{{- if .Values.config }}
checksum/config: {{ .Values.config | sha256sum }}
{{- end }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}
