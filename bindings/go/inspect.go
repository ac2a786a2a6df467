// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"time"

	"libdist.example/dist/internal/cdist"
)

// text returns the text that a query of the strategy writes.
func (s *Strategy) text(write func(t cdist.Text, native int64) error) (string, error) {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return "", u.err
	}
	return written(func(t cdist.Text) error { return write(t, native) })
}

// WriteTrace returns the events of the flight recorder as a trace in Chrome's trace-event format (JSON), for
// Perfetto.
func (s *Strategy) WriteTrace() (string, error) {
	return s.text(func(t cdist.Text, native int64) error { return t.Write_trace(native) })
}

// WriteMetrics returns counters and gauges in Prometheus' text exposition format. name becomes the label
// "strategy" of every sample; "" omits the label.
func (s *Strategy) WriteMetrics(name string) (string, error) {
	if err := checkText(name); err != nil {
		return "", err
	}
	return s.text(func(t cdist.Text, native int64) error { return t.Write_metrics(native, name) })
}

// Explain returns a description of how the strategy uses this machine, and why, for people to read. The first
// three lines are a summary; details follow as lines of the form "subject: text".
func (s *Strategy) Explain() (string, error) {
	return s.text(func(t cdist.Text, native int64) error { return t.Explain(native) })
}

// A Straggler counts how often a replica was the last one to arrive at the rounds of one tag, collective and
// group.
type Straggler struct {
	Collective Collective
	Group      int           // number of the group of replicas; 0 = all replicas
	Replica    int           // -1 = the worker itself, outside replica functions
	Worker     int           // worker of the replica; 0 in a strategy of one process
	Rounds     int64         // number of rounds of this tag, collective and group
	TimesLast  int64         // rounds in which this replica was last; at least 1
	MeanLate   time.Duration // mean time for which all others, already present, waited for it
	MaxLate    time.Duration // longest such time
	Tag        string        // "" = no tag
}

// Stragglers lists the replicas that arrive last, over the successful rounds that the flight recorder still
// holds. The list is sorted by how often a replica was last.
func (s *Strategy) Stragglers() ([]Straggler, error) {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return nil, u.err
	}
	rows := cdist.NewStragglers()
	defer cdist.DeleteStragglers(rows)
	if err := rows.Read(native); err != nil {
		return nil, fromNative(err)
	}
	table := make([]Straggler, rows.Size())
	for i := range table {
		row := int64(i)
		table[i] = Straggler{
			Collective: Collective(rows.Collective(row)),
			Group:      rows.Group(row),
			Replica:    rows.Replica(row),
			Worker:     rows.Worker(row),
			Rounds:     rows.Rounds(row),
			TimesLast:  rows.Times_last(row),
			MeanLate:   time.Duration(rows.Mean_late_ns(row)),
			MaxLate:    time.Duration(rows.Max_late_ns(row)),
			Tag:        rows.Tag(row),
		}
	}
	return table, nil
}

type loopCall struct {
	panics
	body func(begin, end int64)
}

// Loop is called by libdist for a part of a ParallelFor.
func (callbacks) Loop(token, begin, end int64) {
	c := registered[*loopCall](token)
	c.call(func() { c.body(begin, end) })
}

// ParallelFor runs a loop in parallel on this replica's share of the cores. It calls body for pieces [begin,
// end) of at least grain iterations, in any order, several at the same time. body must not call collectives.
// If body panics, ParallelFor returns the panic as an error.
func (r *Replica) ParallelFor(begin, end, grain int64, body func(begin, end int64)) error {
	if err := r.check(); err != nil {
		return err
	}
	c := &loopCall{body: body}
	token := registerIf(body != nil, c)
	defer forget(token)
	return c.own(cdist.Dist_replica_parallel_for(r.handle(), begin, end, grain, token))
}
