// SPDX-License-Identifier: Apache-2.0

// Package distprom exports a strategy's metrics through the Prometheus client library. It is a module of its own,
// so that package dist needs nothing but the standard library.
package distprom

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"libdist.example/dist"
)

// Register makes the metrics of a strategy part of a registry, such as [prometheus.DefaultRegisterer]. name becomes
// the label "strategy" of every sample; "" omits the label. Each gathering calls [dist.Strategy.WriteMetrics]. When
// the strategy is closed, it has no more metrics; the strategy stays in memory as long as the registry.
func Register(registerer prometheus.Registerer, strategy *dist.Strategy, name string) error {
	return registerer.Register(&collector{strategy, name})
}

type collector struct {
	strategy *dist.Strategy
	name     string
}

// Describe announces no metrics: which ones there are depends on what the strategy does.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	families, err := c.read()
	if errors.Is(err, dist.ErrFailedPrecondition) {
		return // closed
	}
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(prometheus.NewDesc("dist_info", "libdist's metrics", nil, nil), err)
		return
	}
	for _, family := range families {
		desc := prometheus.NewDesc(family.GetName(), family.GetHelp(), nil, nil)
		for _, one := range family.GetMetric() {
			metrics <- metric{desc, one}
		}
	}
}

func (c *collector) read() (map[string]*dto.MetricFamily, error) {
	text, err := c.strategy.WriteMetrics(c.name)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(text))
}

// metric is a sample, or a histogram, as libdist wrote it.
type metric struct {
	desc    *prometheus.Desc
	content *dto.Metric
}

func (m metric) Desc() *prometheus.Desc { return m.desc }

func (m metric) Write(out *dto.Metric) error {
	out.Label = m.content.Label
	out.Counter, out.Gauge, out.Histogram, out.Untyped = m.content.Counter, m.content.Gauge, m.content.Histogram, m.content.Untyped
	return nil
}
