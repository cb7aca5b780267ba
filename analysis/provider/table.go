package provider

// table is all that a metric's provider can name, in the order of the docs.
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
