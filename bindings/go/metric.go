// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// A Metric accumulates a number over the updates of all replicas, step after step.
type Metric struct {
	object
	strategy *Strategy
}

var metricNames = map[MetricKind]string{MetricSum: "sum", MetricMean: "mean", MetricAccuracy: "accuracy"}

// NewMetric returns a metric without updates. If name is "", the metric has the name of its kind. The caller
// must close the metric.
func (s *Strategy) NewMetric(kind MetricKind, name string) (*Metric, error) {
	var u uses
	defer u.end()
	strategy, name := u.strategy(s), u.text(name)
	if u.err != nil {
		return nil, u.err
	}
	if name == "" {
		name = metricNames[kind]
	}
	var out int64
	if err := cdist.Dist_metric_create(strategy, int32Of(int(kind)), name, &out); err != nil {
		return nil, fromNative(err)
	}
	m := &Metric{strategy: s}
	m.forget = func(native int64) {
		orphan(cdist.Dist_metric_variable(native))
		cdist.Dist_metric_destroy(native)
	}
	m.open(out, func(native int64) {
		shutWindow(cdist.Dist_metric_variable(native))
		cdist.Dist_metric_destroy(native)
	}, nil)
	return m, nil
}

func (u *uses) metric(m *Metric) int64 {
	if m == nil {
		return 0
	}
	return u.take(&m.object, "metric")
}

// handles returns the handles of the metric and its strategy.
func (m *Metric) handles(u *uses) (strategy, metric int64) {
	if m == nil {
		u.fail(newError(ErrInvalidArgument, "the metric is nil: Strategy.NewMetric creates one"))
		return 0, 0
	}
	return u.busy(m.strategy), u.metric(m)
}

// Close closes the metric. Do not call it while a run uses the metric.
func (m *Metric) Close() error {
	if m != nil {
		m.close()
	}
	return nil
}

// Kind returns what the metric computes; 0 for nil.
func (m *Metric) Kind() MetricKind {
	var u uses
	defer u.end()
	return MetricKind(cdist.Dist_metric_kind_of(u.metric(m)))
}

// Name returns the metric's name; "" for nil.
func (m *Metric) Name() string {
	var u uses
	defer u.end()
	return cdist.Dist_metric_name(u.metric(m))
}

// Variable returns the variable that holds the metric's state, for checkpoints. It is valid until the metric
// is closed.
func (m *Metric) Variable() *Variable {
	if m == nil {
		return nil
	}
	var u uses
	defer u.end()
	return borrowVariable(cdist.Dist_metric_variable(u.metric(m)), m, m.strategy)
}

// Result computes the metric over all updates of all replicas since it was created or reset. A mean or
// accuracy without any weight is 0.
func (m *Metric) Result() (result float64, err error) {
	var u uses
	defer u.end()
	strategy, metric := m.handles(&u)
	if u.err != nil {
		return 0, u.err
	}
	err = fromNative(cdist.Dist_metric_result(strategy, metric, &result))
	return result, err
}

// Reset discards all updates of all replicas.
func (m *Metric) Reset() error {
	var u uses
	defer u.end()
	strategy, metric := m.handles(&u)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_metric_reset(strategy, metric))
}

// UpdateMetric adds a batch to this replica's copy of a metric, without waiting for peers. labels must be nil
// except for [MetricAccuracy]. weights may be nil.
func (r *Replica) UpdateMetric(m *Metric, values, labels, weights Array) error {
	var u uses
	defer u.end()
	replica, metric := u.replica(r), u.metric(m)
	numbers, labelNumbers, weightNumbers := u.tensor(values), u.tensor(labels), u.tensor(weights)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_metric_update(replica, metric, numbers, labelNumbers, weightNumbers))
}

// AverageLoss computes a replica's share of the loss, the weighted sum of perExample / globalBatchSize, and
// writes it to out. The sum over all replicas is the average over the global batch. If globalBatchSize is 0,
// it is the number of examples times the number of replicas. weights may be nil. If globalBatchSize is not 0,
// r may be nil too, and AverageLoss can be called anywhere.
func AverageLoss(r *Replica, perExample, weights Array, globalBatchSize int64, out Array) error {
	var u uses
	defer u.end()
	var replica int64
	if r != nil {
		replica = u.replica(r)
	}
	loss, weightNumbers, to := u.tensor(perExample), u.tensor(weights), u.tensor(out)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_average_loss(replica, loss, weightNumbers, globalBatchSize, to))
}

// ScaleRegularizationLoss computes a replica's share of a loss that is the same on all replicas, its sum
// divided by the number of replicas, and writes it to out. It fails if r is nil, which [CurrentReplica] returns
// in cross-replica context.
func ScaleRegularizationLoss(r *Replica, loss, out Array) error {
	var u uses
	defer u.end()
	var replica int64
	if r != nil {
		replica = u.replica(r)
	}
	numbers, to := u.tensor(loss), u.tensor(out)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_scale_regularization_loss(replica, numbers, to))
}
