package provider_test

import (
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

var wavefrontContract = contract{
	kind: "wavefront", doc: "https://docs.wavefront.com/wavefront_api.html (Charts API, GET /api/v2/chart/api)",
	config:  `{address: ADDRESS, query: 'ts("requests")'}`,
	secrets: map[string]map[string]string{"wavefront-api-tokens": {"127.0.0.1": token}},
	serve: documented("GET /api/v2/chart/api", hasHeader("Authorization", "Bearer "+token), func(f *fake, r *http.Request, _ string) {
		f.wantEqual("query", r.URL.Query(),
			url.Values{"q": {`ts("requests")`}, "s": {"1769860830000"}, "e": {"1769860830000"}, "p": {"1"}, "g": {"s"}, "i": {"true"}})
	}),
	answers: []canned{
		{name: "one", want: 0.97,
			reply: `{"query":"ts","timeseries":[{"label":"requests","data":[[1769860700,1],[1769860820,0.97],[1769860950,3]]}]}`},
		{name: "several", reply: `{"timeseries":[{"data":[[1769860830,1]]},{"data":[[1769860830,2]]}]}`, want: []any{1.0, 2.0}},
		{name: "empty", reply: `{"warnings":"No metrics matching - [requests]"}`, want: nil},
		{name: "no points", reply: `{"timeseries":[{"data":[]}]}`, want: nil},
		{name: "the first of two as near", reply: `{"timeseries":[{"data":[[1769860829,4],[1769860831,5]]}]}`, want: 4.0},
		{name: "half an error", reply: `{"errorType":"QuerySyntaxError"}`, err: "an error of Wavefront: QuerySyntaxError"},
		{name: "the other half", reply: `{"errorMessage":"Syntax Error"}`, err: "an error of Wavefront: Syntax Error"},
		{name: "lies", reply: `{"errorType":"QuerySyntaxError","errorMessage":"Syntax Error"}`, err: "an error of Wavefront: Syntax Error"},
		{name: "no pair", reply: `{"timeseries":[{"data":[[1]]}]}`, err: "a point is not a pair"},
	},
}

var graphiteContract = contract{
	kind: "graphite", doc: "https://graphite.readthedocs.io/en/stable/render_api.html",
	config: "{address: '" + asReader + `/graphite', query: "target=summarize(\n  stats.{a,b}.count,\n  '5min')&from=-5min\n"}`,
	serve: documented("GET /graphite/render", isReader, func(f *fake, r *http.Request, _ string) {
		f.wantEqual("query", r.URL.Query(), url.Values{"target": {"summarize(stats.{a,b}.count,'5min')"}, "from": {"-5min"}, "format": {"json"}})
	}),
	answers: []canned{
		{name: "one", reply: `[{"target":"entries","datapoints":[[1.5,1311836008]]}]`, want: []any{1.5}},
		{name: "several",
			reply: `[{"target":"entries","datapoints":[[1.0,1311836008],[null,1311836009],["6",1311836012]]},{"target":"x","datapoints":[[9,1]]}]`,
			want:  []any{1.0, 6.0}},
		{name: "empty", reply: `[]`, want: []any{}},
		{name: "nothing but null", reply: `[{"target":"entries","datapoints":[[null,1311836009]]}]`, want: []any{}},
		{name: "infinity", reply: `[{"target":"entries","datapoints":[[1e9999,1311836009]]}]`, want: []any{math.Inf(1)}},
		{name: "lies", reply: `{"error":"no such function"}`, err: "it is a mapping"},
		{name: "another API", reply: `[{"name":"x"}]`, err: "no datapoints"},
		{name: "no pair", reply: `[{"target":"x","datapoints":[[1]]}]`, err: "is not a pair"},
	},
}

var influxContract = contract{
	kind: "influxdb", doc: "https://docs.influxdata.com/influxdb/v2/api/#operation/PostQuery, " +
		"https://docs.influxdata.com/influxdb/v2/reference/syntax/annotated-csv/",
	content: "text/csv; charset=utf-8",
	config:  `{query: 'from(bucket: "app") |> range(start: -15m)'}`,
	secrets: map[string]map[string]string{"influxdb": {"address": "ADDRESS", "authToken": token, "org": "acme corp"}},
	serve: documented("POST /api/v2/query", hasHeader("Authorization", "Token "+token), func(f *fake, r *http.Request, body string) {
		f.wantEqual("org", r.URL.Query(), url.Values{"org": {"acme corp"}})
		f.wantEqual("Accept", r.Header.Get("Accept"), "application/csv")
		f.wantEqual("body", f.object(body), parsed(f.t, `{"query": "from(bucket: \"app\") |> range(start: -15m)", "type": "flux",
			"dialect": {"header": true, "delimiter": ",", "commentPrefix": "#", "annotations": ["datatype", "group", "default"]}}`))
	}),
	answers: []canned{
		{name: "one", want: []any{15.43}, reply: "#group,false,false,true,true,false,false,true\r\n" +
			"#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string\r\n#default,mean,,,,,,\r\n" +
			",result,table,_start,_stop,_time,_value,_field\r\n" +
			",,0,2022-12-31T05:41:24Z,2023-01-31T05:41:24.001Z,2023-01-01T00:52:00Z,15.43,mem\r\n\r\n"},
		{name: "several", want: []any{int64(3), int64(4), "a,b", true, nil, uint64(7)},
			reply: "#datatype,string,long,long\n#group,false,false,false\n#default,_result,,\n,result,table,_value\n,,0,3\n,,1,4\n\n" +
				"#datatype,string,long,string\n#group,false,false,false\n#default,_result,,\n,result,table,_value\n,,2,\"a,b\"\n\n" +
				"#datatype,string,long,boolean\n#group,false,false,false\n#default,_result,,\n,result,table,_value\n,,3,true\n,,3,\n\n" +
				"#datatype,string,long,unsignedLong\n#group,false,false,false\n#default,_result,,7\n,result,table,_value\n,,3,\n"},
		{name: "NaN", want: []any{math.NaN(), math.Inf(1)},
			reply: "#datatype,string,long,double\n#group,false,false,false\n#default,_result,,\n,result,table,_value\n,,0,NaN\n,,0,+Inf\n"},
		{name: "empty", reply: "\r\n", want: []any{}},
		{name: "lies", err: "an error of InfluxDB: Failed to parse query",
			reply: "#datatype,string,long\n#group,true,true\n#default,,\n,error,reference\n,Failed to parse query,897\n"},
		{name: "lies late", err: "an error of InfluxDB: out of memory", reply: "#datatype,string,long,double\n#group,false,false,false\n" +
			"#default,_result,,\n,result,table,_value\n,,0,1\n\n#datatype,string,long\n#group,true,true\n#default,,\n,error,reference\n" +
			",out of memory,\n"},
		{name: "ten", want: []any{int64(12), uint64(13)}, reply: "#datatype,string,long,long\n#default,_result,,\n,result,table,_value\n" +
			",,0,12\n\n#datatype,string,long,unsignedLong\n#default,_result,,\n,result,table,_value\n,,0,13\n"},
		{name: "no annotation", want: []any{"x"}, reply: ",_value\n,x\n"},
		{name: "short annotations", want: []any{"x", nil}, reply: "#datatype,long\n#default,1\n,table,_value\n,0,x\n,0,\n"},
		{name: "no values", want: []any{}, reply: "#datatype,string,long\n#default,_result,\n,result,table\n,,0\n"},
		{name: "a short record", err: "it is not annotated CSV", reply: ",result,table,_value\n,,0\n"},
		{name: "a header of nothing", err: "it is not annotated CSV", reply: "OK\n"},
		{name: "errors that were measured", want: []any{int64(3)},
			reply: "#datatype,string,string,long\n#default,,,\n,error,reference,_value\n,timeout,x,3\n"},
		{name: "a column named error", want: []any{}, reply: ",error,table\n,timeout,3\n"},
		{name: "an error without text", want: []any{}, reply: ",reference,error\n,x\n"},
		{name: "no number", err: "a value is no double",
			reply: "#datatype,string,long,double\n#group,false,false,false\n#default,_result,,\n,result,table,_value\n,,0,much\n"},
	},
}

var cloudWatchContract = contract{
	kind: "cloudWatch", doc: "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html",
	content: "text/xml",
	config: "{interval: 30m, metricDataQueries: [{id: rate, expression: errors / 100, label: Rate}, {id: errors, returnData: false, " +
		"metricStat: {metric: {namespace: app, metricName: errors, dimensions: [{name: Service, value: shop}]}, " +
		"period: '300', stat: Sum, unit: Count}}]}",
	env: map[string]string{"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "other" + token,
		"AWS_SESSION_TOKEN": token, "AWS_ENDPOINT_URL_CLOUDWATCH": "ADDRESS"},
	serve: documented("POST /", hasHeader("X-Amz-Security-Token", token), func(f *fake, r *http.Request, body string) {
		// aws_test.go compares signatures with AWS's examples.
		wantSignature(f.t, r, "AKIDEXAMPLE/20260131/eu-central-1/monitoring/aws4_request", "content-type;host;x-amz-date;x-amz-security-token")
		const q = "MetricDataQueries.member."
		f.wantEqual("form", f.form(body), url.Values{
			"Action": {"GetMetricData"}, "Version": {"2010-08-01"}, "StartTime": {"2026-01-31T11:30:30Z"}, "EndTime": {"2026-01-31T12:00:30Z"},
			q + "1.Id": {"rate"}, q + "1.Expression": {"errors / 100"}, q + "1.Label": {"Rate"},
			q + "2.Id": {"errors"}, q + "2.ReturnData": {"false"}, q + "2.MetricStat.Stat": {"Sum"}, q + "2.MetricStat.Period": {"300"},
			q + "2.MetricStat.Unit":             {"Count"},
			q + "2.MetricStat.Metric.Namespace": {"app"}, q + "2.MetricStat.Metric.MetricName": {"errors"},
			q + "2.MetricStat.Metric.Dimensions.member.1.Name": {"Service"}, q + "2.MetricStat.Metric.Dimensions.member.1.Value": {"shop"},
		})
	}),
	answers: []canned{
		{name: "one", reply: cloudWatchReply("Complete", "<Values><member>0.0029</member></Values>"),
			want: []any{cloudWatchWant("Complete", 0.0029)}},
		{name: "several", reply: cloudWatchReply("PartialData", "<Values><member>1.0</member><member>2.0E-3</member></Values>"),
			want: []any{cloudWatchWant("PartialData", 1.0, 0.002)}},
		{name: "empty", reply: cloudWatchReply("Complete", "<Values/>"), want: []any{cloudWatchWant("Complete")}},
		{name: "lies", reply: cloudWatchReply("InternalError", "<Values/>"), err: "an error of CloudWatch: rate is InternalError"},
		{name: "forbidden", reply: cloudWatchReply("Forbidden", "<Values/><Messages><member><Code>Denied</Code><Value>no "+
			"right</Value></member></Messages>"), err: "an error of CloudWatch: rate is Forbidden: Denied no right"},
		{name: "no time", reply: cloudWatchReply("Complete", "<Timestamps><member>soon</member></Timestamps>"), err: "a timestamp is invalid"},
		{name: "no number", reply: cloudWatchReply("Complete", "<Values><member>x</member></Values>"), err: "a value is not a number"},
		{name: "another API", reply: "<ListResponse/>", err: "differs from its documentation"},
	},
}

func cloudWatchReply(status, values string) string {
	return `<GetMetricDataResponse xmlns="http://monitoring.amazonaws.com/doc/2010-08-01/"><GetMetricDataResult><MetricDataResults><member>` +
		`<Timestamps/><Label>Rate</Label><Id>rate</Id><StatusCode>` + status + `</StatusCode>` + values +
		`</member></MetricDataResults><Messages/></GetMetricDataResult></GetMetricDataResponse>`
}

func cloudWatchWant(status string, values ...any) any {
	return map[string]any{"Id": "rate", "Label": "Rate", "StatusCode": status, "Timestamps": []any{}, "Values": append([]any{}, values...)}
}

func searchContract(kind, doc string) contract {
	return contract{
		kind: kind, doc: doc,
		config: "{address: ADDRESS, index: logs-shop-*, query: {term: {level: error}}, " +
			"headers: [{key: Authorization, value: ApiKey " + token + "}]}",
		serve: documented("POST /logs-shop-%2A/_search", hasHeader("Authorization", "ApiKey "+token),
			func(f *fake, r *http.Request, body string) {
				f.wantEqual("Content-Type", r.Header.Get("Content-Type"), "application/json")
				f.wantEqual("body", body, `{"query":{"term":{"level":"error"}},"size":0,"track_total_hits":true}`)
			}),
		answers: []canned{
			{name: "one", reply: `{"took":5,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},` +
				`"hits":{"total":{"value":20,"relation":"eq"},"max_score":null,"hits":[]}}`, want: 20.0},
			{name: "empty", reply: `{"timed_out":false,"_shards":{"total":0,"failed":0},"hits":{"total":{"value":0}}}`, want: 0.0},
			{name: "lies", reply: `{"error":{"root_cause":[],"type":"parsing_exception","reason":"unknown query [tern]"},"status":400}`,
				err: "unknown query [tern]"},
			{name: "timed out", reply: `{"timed_out":true,"_shards":{"total":1,"failed":0},"hits":{"total":{"value":20}}}`, err: "took too long"},
			{name: "half of it", reply: `{"timed_out":false,"_shards":{"total":3,"failed":1},"hits":{"total":{"value":20}}}`,
				err: "1 of 3 shards failed"},
			{name: "another API", reply: `{"hits":{"total":{"value":20}}}`, err: "it has no timed_out"},
		},
	}
}

var (
	elasticsearchContract = searchContract("elasticsearch", "https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search")
	opensearchContract    = searchContract("opensearch", "https://docs.opensearch.org/latest/api-reference/search-apis/search/")
)

// TestAggregations checks that jsonPath finds an aggregation.
func TestAggregations(t *testing.T) {
	c := elasticsearchContract
	c.serve = func(f *fake, w http.ResponseWriter, _ *http.Request, body string) bool {
		f.wantEqual("body", body, `{"aggs":{"p99":{"percentiles":{"field":"ms","percents":[99]}}},"size":0,"track_total_hits":true}`)
		f.send(w)
		return true
	}
	b := newBench(t, c)
	b.reply = `{"timed_out":false,"_shards":{"total":1,"failed":0},"hits":{"total":{"value":20}},` +
		`"aggregations":{"p99":{"values":{"99.0":120.5}}}}`
	delete(b.request.Config, "query")
	b.request.Config["aggs"] = `{"p99": {"percentiles": {"field": "ms", "percents": [99]}}}`
	b.request.Config["jsonPath"] = `{$.aggregations.p99.values['99\.0']}`
	b.wantValue(120.5)
}

// TestWhatPeopleAreShown checks the metadata of a measurement, such as timestamps and the provider's messages.
func TestWhatPeopleAreShown(t *testing.T) {
	said := func(text string) string {
		return "<Messages><member><Code>" + text + "</Code><Value>is late</Value></member></Messages>"
	}
	for name, c := range map[string]struct {
		contract
		reply string
		want  map[string]string
	}{
		"wavefront": {wavefrontContract, `{"timeseries":[{"data":[[1769860700,1],[1769860820.5,0.97]]}]}`,
			map[string]string{"timestamps": "1769860820", "drift": "-10"}},
		"several of wavefront": {wavefrontContract, `{"warnings":"slow","timeseries":[{"data":[[1769860830,1]]},{"data":[[1769860832,2]]}]}`,
			map[string]string{"warnings": "slow", "timestamps": "[1769860830,1769860832]", "drift": "[0,2]"}},
		"none of wavefront": {wavefrontContract, `{}`, map[string]string{}},
		"cloudWatch": {cloudWatchContract, strings.Replace(cloudWatchReply("Complete", said("A")), "<Messages/>", said("B"), 1),
			map[string]string{"messages": "B is late; A is late"}},
		"cloudWatch says nothing": {cloudWatchContract, cloudWatchReply("Complete", ""), nil},
		"prometheus":              {prometheusContract, prometheusAnswers[0].reply, nil},
		"prometheus warns": {prometheusContract, strings.Replace(prometheusAnswers[0].reply, "{", `{"warnings":["it is old"],`, 1),
			map[string]string{"warnings": "it is old"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.contract)
			b.reply = c.reply
			got, err := b.measure(t.Context())
			delete(got.Metadata, "ResolvedPrometheusQuery")
			must(t, err)
			if len(got.Metadata)+len(c.want) > 0 {
				compare.Check(t, c.want, got.Metadata)
			}
		})
	}
}
