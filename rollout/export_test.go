package rollout

func DefaultStatus() PartitionStatus { return partitionStatus } // has the status fields of a kind whose configuration names no other fields

var (
	ManyDocuments = manyDocuments // is called for each document of a file, so the test needs no file
	CheckBranch   = checkBranch   // says why a name is no branch, which the fuzz test compares with Git
	Redact        = redact        // hides credentials in the errors of a configuration
)
