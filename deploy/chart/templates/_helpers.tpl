{{/* The name of all objects: the release's, if it says gitrollout. */}}
{{- define "gitrollout.name" -}}
{{- ternary .Release.Name (printf "%s-gitrollout" .Release.Name) (contains "gitrollout" .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* What selects the pods. A release with another name than the chart's is told apart. */}}
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
