//go:build kubernetes1.30

package podsim

import corev1 "k8s.io/api/core/v1"

func observe(*corev1.PodStatus, int64) {}

func observeCondition(*corev1.PodCondition, int64) {}
