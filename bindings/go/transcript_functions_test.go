// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"fmt"
	"io"

	"libdist.example/dist"
)

// The functions of the program that libdist calls: each plays the line below its call that fits what it is given.

var errNoLine = fmt.Errorf("a function was called as no line says")

// given compares what a function was given, and binds its names.
func (p *player) given(l *line, key string, v *dist.Value) {
	name, has := l.given[key]
	if !has || name == "-" {
		if v != nil {
			p.fault(l, "%s is %v, expected none", key, v)
		}
		return
	}
	if err := p.bind(name, v.Retain()); err != nil {
		p.fault(l, "%s: %v", key, err)
	}
	if expected, has := l.given[key+".is"]; has {
		if err := p.matches(parseTree(expected), v); err != nil {
			p.fault(l, "%s: %v", key, err)
		}
	}
}

// finish does the calls of a function's line, and gives what the function returns.
func (p *player) finish(l *line) (*dist.Value, error) {
	failure := p.below(l)
	if code := dist.Code(l.answered.int("status")); code != 0 {
		text := l.answered.text("error")
		if failure != nil { // the cause itself, where it is
			if failed, words := statusOf(failure); failed == code && (sameText(text, words) || l.answered["error"] == "?") {
				return nil, failure
			}
		}
		return nil, &programError{code, text}
	}
	return get[*dist.Value](p, l.answered["result"]).Retain(), nil
}

func (p *player) replica(call *line) dist.ValuesFunc {
	return func(r *dist.Replica, args, kwargs *dist.Value) (*dist.Value, error) {
		l := p.take(call, func(l *line) bool { return l.given.int("id") == r.ID() })
		if l == nil {
			p.fault(call, "replica %d: %v", r.ID(), errNoLine)
			return nil, errNoLine
		}
		_ = p.bind(l.given["replica"], r)
		p.given(l, "args", args)
		p.given(l, "kwargs", kwargs)
		return p.finish(l)
	}
}

func (p *player) merge(call *line) dist.MergeFunc {
	return func(s *dist.Strategy, args, kwargs *dist.Value) (*dist.Value, error) {
		l := p.take(call, func(*line) bool { return true })
		if l == nil {
			p.fault(call, "merge: %v", errNoLine)
			return nil, errNoLine
		}
		if err := p.bind(l.given["strategy"], s); err != nil {
			p.fault(l, "strategy: %v", err)
		}
		p.given(l, "args", args)
		p.given(l, "kwargs", kwargs)
		return p.finish(l)
	}
}

// changes says whether a line is about this copy of a variable, with these arguments.
func (p *player) changes(l *line, copy dist.RawTensor, args *dist.Value) bool {
	if copy.DType != 0 && sameTensor(l.given["copy"], copy) != nil {
		return false
	}
	expected, has := l.given["args.is"]
	return !has || p.matches(parseTree(expected), args) == nil
}

// write changes a tensor to the line's answer.
func write(l *line, key string, tensor dist.RawTensor) {
	if after, err := tensorOf(l.answered[key]); err == nil {
		copy(tensor.Data, after.Data)
	}
}

func (p *player) update(call *line) dist.UpdateFunc {
	return func(place dist.UpdatePlace, args, kwargs *dist.Value) (*dist.Value, error) {
		l := p.take(call, func(l *line) bool {
			return l.given.int("replica") == place.Replica && l.given.text("device") == place.Device &&
				p.changes(l, place.Copy, args)
		})
		if l == nil {
			p.fault(call, "update: %v", errNoLine)
			return nil, errNoLine
		}
		p.given(l, "args", args)
		p.given(l, "kwargs", kwargs)
		write(l, "copy", place.Copy)
		return p.finish(l)
	}
}

func (p *player) value(call *line) dist.ValueFunc {
	return func(replica, numReplicas int) (*dist.Value, error) {
		l := p.take(call, func(l *line) bool {
			return l.given.int("replica_id_in_sync_group") == replica && l.given.int("num_replicas_in_sync") == numReplicas
		})
		if l == nil {
			p.fault(call, "value: %v", errNoLine)
			return nil, errNoLine
		}
		return p.finish(l)
	}
}

func (p *player) initial(call *line) func() (*dist.Value, error) {
	return func() (*dist.Value, error) {
		l := p.take(call, func(*line) bool { return true })
		if l == nil {
			p.fault(call, "initial: %v", errNoLine)
			return nil, errNoLine
		}
		return p.finish(l)
	}
}

// element is that of a table: its line may be played any number of times.
func (p *player) element(call *line, fits func(*line) bool) (*dist.Value, error) {
	for _, l := range call.below {
		if !fits(l) {
			continue
		}
		if l.answered["status"] == "11" {
			return nil, io.EOF
		}
		return p.finish(l)
	}
	p.fault(call, "source: %v", errNoLine)
	return nil, errNoLine
}

func (p *player) source(call *line) dist.SourceFunc {
	return func(index int64) (*dist.Value, error) {
		return p.element(call, func(l *line) bool { return int64(l.given.int("index")) == index })
	}
}

func (p *player) fileSource(call *line) dist.FileSourceFunc {
	return func(file int, name string, index int64) (*dist.Value, error) {
		return p.element(call, func(l *line) bool {
			return l.given.int("file") == file && l.given.text("name") == name && int64(l.given.int("index")) == index
		})
	}
}

func (p *player) dataset(call *line) dist.DatasetFunc {
	return func(context dist.InputContext) (*dist.Dataset, error) {
		l := p.take(call, func(l *line) bool { return l.given.int("input_pipeline_id") == context.InputPipelineID })
		if l == nil || l.given.int("num_input_pipelines") != context.NumInputPipelines ||
			l.given.int("num_replicas_in_sync") != context.NumReplicasInSync {
			p.fault(call, "dataset: %v: %+v", errNoLine, context)
			return nil, errNoLine
		}
		if _, err := p.finish(l); err != nil {
			return nil, err
		}
		return get[*dist.Dataset](p, l.answered["result"]), nil
	}
}

func (p *player) accumulate(call *line) dist.ReduceOperator {
	return func(acc, in dist.RawTensor) {
		l := p.take(call, func(l *line) bool {
			return l.given["acc"] == literalOf(acc) && l.given["in"] == literalOf(in)
		})
		if l == nil {
			p.fault(call, "accumulate: %v", errNoLine)
			return
		}
		write(l, "acc", acc)
	}
}
