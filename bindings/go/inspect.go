// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"time"

	"libdist.example/dist/internal/cdist"
)

// text is what a question about the strategy writes.
func (s *Strategy) text(write func(t cdist.Text, native int64) error) (string, error) {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return "", u.err
	}
	return written(func(t cdist.Text) error { return write(t, native) })
}

// WriteTrace is what the flight recorder holds, as a trace: JSON of Chrome's trace-event format, for Perfetto.
func (s *Strategy) WriteTrace() (string, error) {
	return s.text(func(t cdist.Text, native int64) error { return t.Write_trace(native) })
}

// WriteMetrics are counters and gauges in Prometheus' text exposition format. name becomes the label `strategy` of every
// sample; "": none.
func (s *Strategy) WriteMetrics(name string) (string, error) {
	if err := checkText(name); err != nil {
		return "", err
	}
	return s.text(func(t cdist.Text, native int64) error { return t.Write_metrics(native, name) })
}

// Explain says what the strategy came to on this machine, and why: lines of "subject: words", for people.
func (s *Strategy) Explain() (string, error) {
	return s.text(func(t cdist.Text, native int64) error { return t.Explain(native) })
}

// Straggler is how often a replica was the last to come to the rounds of one tag, collective and group.
type Straggler struct {
	Collective Collective
	Group      int           // which group of replicas met; 0: all
	Replica    int           // -1: the worker itself, outside of its replicas' functions
	Worker     int           // the replica's; 0 in a strategy of one process
	Rounds     int64         // of this tag, collective and group, whoever was last
	TimesLast  int64         // at least 1
	MeanLate   time.Duration // how long all others, all there, waited for it
	MaxLate    time.Duration
	Tag        string // "" where there was none
}

// Stragglers says who comes last: a table over the rounds that the recorder still holds, most often last first.
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
	operators
	body func(begin, end int64)
}

// Loop is called by libdist for a part of a ParallelFor.
func (callbacks) Loop(token, begin, end int64) {
	c := registered[*loopCall](token)
	c.call(func() { c.body(begin, end) })
}

// ParallelFor runs a loop on this replica's share of the cores, in pieces [begin, end) of at least grain iterations, in
// any order, some at the same time. body must not call collectives. A panic in it is the error.
func (r *Replica) ParallelFor(begin, end, grain int64, body func(begin, end int64)) error {
	if err := r.check(); err != nil {
		return err
	}
	c := &loopCall{body: body}
	token := registerIf(body != nil, c)
	defer forget(token)
	return c.own(cdist.Dist_parallel_for(r.handle(), begin, end, grain, token))
}
