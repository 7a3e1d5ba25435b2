{{/*
The sidecar as one entry of initContainers. In a chart of your own that has this one as a dependency (with workload.enabled=false):

  initContainers:
    {{- include "toolvane.sidecar" .Subcharts.toolvane | nindent 4 }}
  volumes:
    {{- include "toolvane.volumes" .Subcharts.toolvane | nindent 4 }}

and, in a ConfigMap named {{ include "toolvane.configMapName" .Subcharts.toolvane }}:

  data:
    {{- include "toolvane.config" .Subcharts.toolvane | nindent 4 }}
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
          - --admin
          - unix:/var/lib/toolvane/admin.sock
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
