package provider

// providers are all that a metric's provider can name, in the order of the docs.
func providers() []provider {
	return []provider{
		prometheus,
		web,
		job,
		datadog,
		newRelic,
		wavefront,
		kayenta,
		cloudWatch,
		graphite,
		influxdb,
		skywalking,
		loki,
		elasticsearch,
		opensearch,
		webhook,
	}
}
