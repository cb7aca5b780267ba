{{/* The name of all objects: the Helm release's name, with -gitrollout unless it contains gitrollout. */}}
{{- define "gitrollout.name" -}}
{{- ternary .Release.Name (printf "%s-gitrollout" .Release.Name) (contains "gitrollout" .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The labels that select the pods. The label instance distinguishes Helm releases with other names than gitrollout. */}}
{{- define "gitrollout.labels" -}}
app.kubernetes.io/name: gitrollout
{{- if ne .Release.Name "gitrollout" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- end -}}

{{- define "gitrollout.account" -}}
{{- .Values.serviceAccount.name | default (include "gitrollout.name" .) -}}
{{- end -}}

{{- define "gitrollout.image" -}}
{{- $i := .Values.image -}}
{{- $i.repository }}{{ with $i.digest }}@{{ . }}{{ else }}:{{ $i.tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/* The account as the subject of a binding. */}}
{{- define "gitrollout.subject" -}}
- kind: ServiceAccount
  name: {{ include "gitrollout.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
