package plan

// CanaryCounts returns the pod counts of a step without a spec, for tables of many numbers of replicas.
var CanaryCounts = canaryCounts
