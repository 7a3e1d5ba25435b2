{{/*
The sidecar as one entry of initContainers. In your own chart, with this one as a dependency named toolvane:

  initContainers:
    {{- include "toolvane.sidecar" (dict "Values" .Values.toolvane "Chart" .Subcharts.toolvane.Chart "Release" .Release) | nindent 4 }}

together with toolvane.volumes, and toolvane.config in a ConfigMap of the name that toolvane.configMapName gives.
*/}}
{{- define "toolvane.sidecar" -}}
- name: toolvane
  image: "{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}"
  {{- if ne .Values.image.pullPolicy "IfNotPresent" }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  {{- end }}
  restartPolicy: Always
  args: [run, -c, /etc/toolvane/toolvane.yaml]
  {{- with .Values.sidecar.env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - {name: mcp, containerPort: {{ include "toolvane.port" . }}}
    - {name: toolvane-admin, containerPort: {{ include "toolvane.adminPort" . }}}
  startupProbe:
    httpGet: {path: /startupz, port: toolvane-admin}
    periodSeconds: 1
    failureThreshold: 30
  livenessProbe:
    httpGet: {path: /livez, port: toolvane-admin}
    periodSeconds: 10
    timeoutSeconds: 3
    failureThreshold: 3
  readinessProbe:
    httpGet: {path: /readyz, port: toolvane-admin}
    periodSeconds: 2
    timeoutSeconds: 3
    failureThreshold: 1
  lifecycle:
    preStop:
      exec:
        command:
          - /toolvane
          - drain
          {{- if ne (include "toolvane.adminPort" .) "9090" }}
          - --admin
          - 127.0.0.1:{{ include "toolvane.adminPort" . }}
          {{- end }}
  resources:
    {{- toYaml .Values.sidecar.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - {name: toolvane-config, mountPath: /etc/toolvane, readOnly: true}
    - {name: toolvane-state, mountPath: /var/lib/toolvane}
{{- end -}}

{{- define "toolvane.volumes" -}}
- name: toolvane-config
  configMap: {name: {{ include "toolvane.configMapName" . }}}
- name: toolvane-state
  emptyDir: {sizeLimit: {{ .Values.sidecar.stateSizeLimit }}}
{{- end -}}

{{/* The data of the ConfigMap. */}}
{{- define "toolvane.config" -}}
toolvane.yaml: |
  {{- toYaml .Values.config | nindent 2 }}
{{- range $name, $text := .Values.ruleFiles }}
{{ $name }}: |
  {{- $text | nindent 2 }}
{{- end }}
{{- end -}}
