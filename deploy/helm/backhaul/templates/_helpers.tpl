{{/* Traits of the services that are no choice of an installation. */}}
{{- define "backhaul.traits" -}}
auth: { port: 8081, prefix: AUTH, host: auth, database: true, delivers: false, sealing: true, shopper: false }
order-intake: { port: 8082, prefix: ORDER_INTAKE, host: orders, database: true, delivers: false, sealing: false, shopper: false }
rma-engine: { port: 8083, prefix: RMA_ENGINE, host: returns, database: true, delivers: true, sealing: true, shopper: true, queues: [notify.rma, notify.label-request] }
exchange: { port: 8084, prefix: EXCHANGE, host: exchange, database: true, delivers: true, sealing: true, shopper: true, queues: [notify.exchange-order] }
warehouse-notifier:
  { port: 8085, prefix: WAREHOUSE_NOTIFIER, host: warehouse, database: true, delivers: true, sealing: true, shopper: false,
    queues: [notify.outbound-asn, notify.inventory-receipt, notify.drop-shipment-confirmation,
             notify.drop-shipment-cancellation, notify.drop-shipment-partial-cancellation] }
console: { port: 8086, prefix: CONSOLE, host: console, database: false, delivers: false, sealing: false, shopper: false }
portal: { port: 8080, prefix: PORTAL, host: portal, database: false, delivers: false, sealing: false, shopper: false }
{{- end }}

{{- define "backhaul.labels" -}}
app.kubernetes.io/part-of: backhaul
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* backhaul.secret (list ROOT NAME): the name of a secret. */}}
{{- define "backhaul.secret" -}}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
{{ index $root.Values.secrets.existingSecret $name | default $name }}
{{- end }}

{{/* backhaul.host (list ROOT SERVICE): the public host name of a service. */}}
{{- define "backhaul.host" -}}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
{{- $traits := index (include "backhaul.traits" $root | fromYaml) $name -}}
{{ index $root.Values.ingress.hosts $name | default (printf "%s.%s" $traits.host $root.Values.domain) }}
{{- end }}

{{- define "backhaul.image" -}}
{{- $root := index . 0 -}}
{{ $root.Values.image.registry }}/{{ index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end }}

{{/* backhaul.env (list ROOT SERVICE DATABASE-SECRET): the secret settings of a service. */}}
{{- define "backhaul.env" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $database := index . 2 -}}
{{- $traits := index (include "backhaul.traits" $root | fromYaml) $name -}}
{{- $secrets := list -}}
{{- if $traits.database -}}
{{- $secrets = append $secrets (list "DATABASE__URL" $database "url") -}}
{{- $secrets = append $secrets (list "BROKER__URL" (printf "%s-broker" $name) "url") -}}
{{- end -}}
{{- if $traits.sealing }}{{ $secrets = append $secrets (list "SEALING__KEYS" "sealing" "keys") }}{{ end -}}
{{- if $traits.shopper }}{{ $secrets = append $secrets (list "SHOPPER__PROOF_KEYS" "shopper" "proof-keys") }}{{ end -}}
{{- if eq $name "auth" -}}
{{- $secrets = append $secrets (list "BOOTSTRAP__CLIENT_ID" "first-operator" "client_id") -}}
{{- $secrets = append $secrets (list "BOOTSTRAP__CLIENT_SECRET" "first-operator" "client_secret") -}}
{{- $secrets = append $secrets (list "BOOTSTRAP__PORTAL_CLIENT_ID" "portal" "client_id") -}}
{{- $secrets = append $secrets (list "BOOTSTRAP__PORTAL_CLIENT_SECRET" "portal" "client_secret") -}}
{{- end -}}
{{- if eq $name "portal" -}}
{{- $secrets = append $secrets (list "CLIENT__ID" "portal" "client_id") -}}
{{- $secrets = append $secrets (list "CLIENT__SECRET" "portal" "client_secret") -}}
{{- $secrets = append $secrets (list "SEALING__KEYS" "portal" "sealing-keys") -}}
{{- end -}}
{{- if and $traits.database $root.Values.database.authoritySecret }}
# The certificate authority of the database, in addition to the public ones.
- { name: SSL_CERT_FILE, value: /etc/ssl/certs/ca-certificates.crt }
- { name: SSL_CERT_DIR, value: /etc/backhaul/authorities }
{{- end }}
{{- range $secrets }}
- name: {{ $traits.prefix }}__{{ index . 0 }}
  valueFrom: { secretKeyRef: { name: {{ include "backhaul.secret" (list $root (index . 1)) }}, key: {{ index . 2 }} } }
{{- end }}
{{- end }}

{{- define "backhaul.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "backhaul.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
