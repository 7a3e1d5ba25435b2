{{/* Name of what the release makes. */}}
{{- define "toolvane.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "toolvane.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "toolvane.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "toolvane.selectorLabels" . }}
{{- end -}}

{{- define "toolvane.configMapName" -}}
{{- default (include "toolvane.fullname" .) .Values.existingConfigMap -}}
{{- end -}}

{{/* The ports that the configuration states. */}}
{{- define "toolvane.port" -}}
{{- regexFind "[0-9]+$" (kindIs "slice" .Values.config.listen | ternary (join "," .Values.config.listen) (toString .Values.config.listen)) -}}
{{- end -}}

{{- define "toolvane.adminPort" -}}
{{- regexFind "[0-9]+$" .Values.config.admin.listen -}}
{{- end -}}
