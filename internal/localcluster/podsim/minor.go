//go:build !kubernetes1.30

package podsim

import corev1 "k8s.io/api/core/v1"

// This file sets the fields that the oldest supported minor version of Kubernetes lacks. See minor.go of package main.

func observe(status *corev1.PodStatus, generation int64) { status.ObservedGeneration = generation }

func observeCondition(condition *corev1.PodCondition, generation int64) {
	condition.ObservedGeneration = generation
}
