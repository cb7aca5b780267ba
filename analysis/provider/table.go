package provider

var table = []provider{
	{"prometheus", func() config { return &prometheusConfig{} }},
	{"web", func() config { return &webConfig{} }},
	{"job", func() config { return &jobConfig{} }},
	{"datadog", func() config { return &datadogConfig{} }},
	{"newRelic", func() config { return &newRelicConfig{} }},
	{"wavefront", func() config { return &wavefrontConfig{} }},
	{"kayenta", func() config { return &kayentaConfig{} }},
	{"cloudWatch", func() config { return &cloudWatchConfig{} }},
	{"graphite", func() config { return &graphiteConfig{} }},
	{"influxdb", func() config { return &influxConfig{} }},
	{"skywalking", func() config { return &skywalkingConfig{} }},
	{"loki", func() config { return &lokiConfig{} }},
	{"elasticsearch", func() config { return &searchConfig{name: "Elasticsearch"} }},
	{"opensearch", func() config { return &searchConfig{name: "OpenSearch", service: "es"} }},
	{"webhook", func() config { return &webhookConfig{} }},
}
