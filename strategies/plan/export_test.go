package plan

// CanaryCounts is tested in tables of many numbers of replicas, without a spec for each.
var CanaryCounts = canaryCounts
