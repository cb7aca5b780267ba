package rollout

func DefaultStatus() PartitionStatus { return partitionStatus } // the status fields of a kind whose configuration names none

var (
	ManyDocuments = manyDocuments // reports whether a file has several documents
	CheckBranch   = checkBranch   // says why a name is no branch
)
