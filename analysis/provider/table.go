package provider

// table lists all providers, in the order of the docs.
var table = []provider{
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
