package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pollEvery is the interval between polls of the cluster's state. It is short, because tests wait for these polls.
const pollEvery = 20 * time.Millisecond

// awaitAPI waits until the apiserver is ready and has the default roles and namespaces.
func (c *cluster) awaitAPI(ctx context.Context) error {
	return c.poll(ctx, "the apiserver to be ready", func(ctx context.Context) error {
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// awaitUsable waits until pods of the default namespace can run. Every pod needs a service account and the cluster CA
// in its namespace. Controllers create these objects, so their existence shows that the controllers run.
func (c *cluster) awaitUsable(ctx context.Context) error {
	return c.poll(ctx, "the cluster to be usable", func(ctx context.Context) error {
		if _, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := c.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
}

// poll repeats the check until it passes, a part of the cluster fails or the context ends.
func (c *cluster) poll(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case failure := <-c.failed:
			return failure
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last: %w)", what, ctx.Err(), err)
		case <-time.After(pollEvery):
		}
	}
}
