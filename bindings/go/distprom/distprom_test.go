// SPDX-License-Identifier: Apache-2.0

package distprom_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"libdist.example/dist"
	"libdist.example/dist/distprom"
)

func running(t *testing.T) *dist.Strategy {
	t.Helper()
	strategy, err := dist.New(dist.Options{Replicas: 2, Threads: dist.LibraryThreads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { strategy.Close() })
	if err := strategy.Run(context.Background(), func(r *dist.Replica) error {
		return dist.AllReduce(r, dist.Sum, []float32{1})
	}); err != nil {
		t.Fatal(err)
	}
	return strategy
}

// gather returns the metrics of a registry by name.
func gather(t *testing.T, registry *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, family := range families {
		byName[family.GetName()] = family
	}
	return byName
}

func TestTheRegistryHasTheMetricsOfBothStrategies(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"first", "second"} {
		if err := distprom.Register(registry, running(t), name); err != nil {
			t.Fatal(err)
		}
	}
	families := gather(t, registry)
	collectives := families["dist_collectives_total"]
	if collectives.GetType() != dto.MetricType_COUNTER || collectives.GetHelp() == "" {
		t.Error(collectives)
	}
	counts := map[string]float64{}
	for _, sample := range collectives.GetMetric() {
		labels := map[string]string{}
		for _, label := range sample.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if sample.GetCounter().GetValue() != 0 {
			counts[labels["strategy"]+labels["replica"]] += sample.GetCounter().GetValue()
		}
	}
	if fmt.Sprint(counts) != "map[first0:1 first1:1 second0:1 second1:1]" {
		t.Error(counts)
	}
	if families["dist_replicas"].GetMetric()[0].GetGauge().GetValue() != 2 {
		t.Error(families["dist_replicas"])
	}
}

func TestAHistogramKeepsItsBuckets(t *testing.T) {
	strategy := running(t)
	if err := strategy.OpenInstances(dist.InstancesOptions{}); err != nil {
		t.Fatal(err)
	}
	defer strategy.CloseInstances(context.Background())
	request, err := strategy.Submit(context.Background(), func(*dist.Replica) error { return nil }, dist.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := request.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	if err := distprom.Register(registry, strategy, ""); err != nil {
		t.Fatal(err)
	}
	var served, buckets uint64
	for _, sample := range gather(t, registry)["dist_request_wait_seconds"].GetMetric() {
		served += sample.GetHistogram().GetSampleCount()
		buckets += uint64(len(sample.GetHistogram().GetBucket()))
	}
	if served != 1 || buckets < 10 {
		t.Error(served, buckets)
	}
}

func TestAClosedStrategyHasNoMetrics(t *testing.T) {
	registry, strategy := prometheus.NewPedanticRegistry(), running(t)
	if err := distprom.Register(registry, strategy, ""); err != nil {
		t.Fatal(err)
	}
	if len(gather(t, registry)) == 0 {
		t.Error("no metrics")
	}
	if err := strategy.Close(); err != nil {
		t.Fatal(err)
	}
	if families := gather(t, registry); len(families) != 0 {
		t.Error(families)
	}
}
