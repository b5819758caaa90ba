{{/* Rejects values that the schema accepts and that cannot work. */}}
{{- define "backhaul.validate" -}}
{{- $root := . -}}

{{- with .Values.image.tag -}}
{{- if not (regexMatch "^[A-Za-z0-9_][A-Za-z0-9_.-]*$" .) -}}
{{- fail (printf "image.tag is %s: a tag has only A-Z, a-z, 0-9, ., _ and -" .) -}}
{{- end -}}
{{- /* A pod that restarts could get another version than its migrations. */ -}}
{{- if not (regexMatch "[0-9]+\\.[0-9]+\\.[0-9]+|[0-9a-f]{7}" .) -}}
{{- fail (printf "image.tag is %s: it must name one version, such as 0.1.0 or a commit" .) -}}
{{- end -}}
{{- end -}}

{{- include "backhaul.validateHost" (list "domain" .Values.domain) -}}
{{- range $name, $host := .Values.ingress.hosts -}}
{{- include "backhaul.validateHost" (list (printf "ingress.hosts.%s" $name) $host) -}}
{{- end -}}
{{- range .Values.ingress.portalHosts -}}
{{- include "backhaul.validateHost" (list "ingress.portalHosts" .) -}}
{{- end -}}
{{- range .Values.ingress.portalTls -}}
{{- range .hosts -}}
{{- /* A certificate may cover a whole domain. */ -}}
{{- include "backhaul.validateHost" (list "ingress.portalTls" (trimPrefix "*." .)) -}}
{{- end -}}
{{- end -}}

{{- /* Without trusted proxies all clients share the address of the ingress controller, and its limits. */ -}}
{{- range splitList "," .Values.trustedProxies -}}
{{- $network := trim . -}}
{{- $byte := "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" -}}
{{- $v4 := printf "%s(\\.%s){3}(/(3[0-2]|[12]?[0-9]))?" $byte $byte -}}
{{- $v6 := "[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?" -}}
{{- if not (regexMatch (printf "^(%s|%s)$" $v4 $v6) $network) -}}
{{- fail (printf "trustedProxies has %q, which is not an address or a network like 10.0.0.0/8" $network) -}}
{{- end -}}
{{- end -}}

{{- range $name, $traits := include "backhaul.traits" . | fromYaml -}}
{{- $service := index $root.Values.services $name -}}
{{- if and $root.Values.autoscaling.enabled (gt (int $service.replicas.min) (int $service.replicas.max)) -}}
{{- fail (printf "services.%s.replicas: min is %v, which is more than max, %v" $name $service.replicas.min $service.replicas.max) -}}
{{- end -}}
{{- range $setting, $_ := $service.settings -}}
{{- $where := printf "services.%s.settings has %s" $name $setting -}}
{{- if hasPrefix (printf "%s__" $traits.prefix) $setting -}}
{{- fail (printf "%s: leave out the prefix %s__" $where $traits.prefix) -}}
{{- end -}}
{{- if has $setting (list "HTTP__PORT" "HTTP__BEHIND_TLS_PROXY") -}}
{{- fail (printf "%s: the chart sets it, because its probes and services depend on it" $where) -}}
{{- end -}}
{{- if has $setting (list "DATABASE__URL" "BROKER__URL" "SEALING__KEYS" "SHOPPER__PROOF_KEYS" "BOOTSTRAP__CLIENT_ID" "BOOTSTRAP__CLIENT_SECRET" "BOOTSTRAP__PORTAL_CLIENT_ID" "BOOTSTRAP__PORTAL_CLIENT_SECRET" "CLIENT__ID" "CLIENT__SECRET") -}}
{{- fail (printf "%s: the chart reads it from a secret; name yours in secrets.existingSecret" $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* backhaul.validateHost (list VALUE HOST): rejects a host that is not a host name in lower case. */}}
{{- define "backhaul.validateHost" -}}
{{- $label := "[a-z0-9]([a-z0-9-]*[a-z0-9])?" -}}
{{- if not (regexMatch (printf "^%s(\\.%s)*$" $label $label) (index . 1)) -}}
{{- fail (printf "%s is %q: write a host name in lower case, without scheme, port and path" (index . 0) (index . 1)) -}}
{{- end -}}
{{- end }}
