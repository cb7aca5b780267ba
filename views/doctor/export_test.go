package doctor

import "context"

// ExamineKeys examines the apps' encrypted files without a cluster.
func (c Cluster) ExamineKeys(ctx context.Context, e *Examination) { c.examineKeys(ctx, e, clients{}) }
