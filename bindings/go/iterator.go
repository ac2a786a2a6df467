// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"fmt"
	"iter"

	"libdist.example/dist/internal/cdist"
)

// A Position is a position in a pass: plain numbers, which the program can store anywhere.
type Position struct {
	Pass     int64 // number of the pass; shuffled orders depend on it
	Elements int64 // elements of the source that have been used up
	Examples int64 // examples used of the next element, if one element is split into several batches
	Batches  int64 // batches made so far
}

func (p Position) native() cdist.Dist_position {
	native := cdist.NewDist_position()
	native.SetPass(p.Pass)
	native.SetElements(p.Elements)
	native.SetExamples(p.Examples)
	native.SetBatches(p.Batches)
	return native
}

func positionOf(native cdist.Dist_position) Position {
	return Position{native.GetPass(), native.GetElements(), native.GetExamples(), native.GetBatches()}
}

// An Iterator is one pass over a dataset. It must not be used by several goroutines at the same time.
type Iterator struct {
	object
	dataset *Dataset
}

func (d *Dataset) newIterator(create func(native int64, out *int64) error) (*Iterator, error) {
	var out int64
	if err := d.with(func(native int64) error { return create(native, &out) }); err != nil {
		return nil, err
	}
	it := &Iterator{dataset: d}
	it.open(out, cdist.Dist_iterator_destroy, nil)
	return it, nil
}

// NewIterator starts a pass. The first pass of a dataset has number 0, the next one 1, and so on. The caller
// must close the iterator.
func (d *Dataset) NewIterator() (*Iterator, error) { return d.newIterator(cdist.Dist_iterator_create) }

// NewIteratorAt starts a pass at a position. The batches continue exactly as they would have from there. The
// caller must close the iterator.
func (d *Dataset) NewIteratorAt(position Position) (*Iterator, error) {
	native := position.native()
	defer cdist.DeleteDist_position(native)
	return d.newIterator(func(dataset int64, out *int64) error {
		return cdist.Dist_iterator_create_at(dataset, native, out)
	})
}

// with calls a function with the iterator's handle.
func (it *Iterator) with(call func(native int64) error) error {
	if it == nil || it.dataset == nil {
		return fromNative(call(0))
	}
	var u uses
	defer u.end()
	native := u.take(&it.object, "iterator")
	if u.err != nil {
		return u.err
	}
	return it.dataset.own(call(native))
}

// step is with for calls that may wait for other workers. Their strategy must not end meanwhile.
func (it *Iterator) step(call func(native int64) error) error {
	var u uses
	defer u.end()
	if it != nil && it.dataset != nil {
		u.busy(it.dataset.workers)
	}
	if u.err != nil {
		return u.err
	}
	return it.with(call)
}

// Next returns the next batch: the structure of an element, with a per-replica value at each leaf (with one
// replica, a tensor). It fails with [ErrOutOfRange] when the pass has ended. The caller must close the batch.
func (it *Iterator) Next() (*Value, error) {
	var out int64
	err := it.step(func(native int64) error { return cdist.Dist_iterator_next(native, &out) })
	if err == nil && out == 0 {
		return nil, fmt.Errorf("%w: the pass has ended", ErrOutOfRange)
	}
	return adopt(out, err)
}

// NextOptional returns the next batch like [Iterator.Next], but returns nil without an error when the pass
// has ended.
func (it *Iterator) NextOptional() (*Value, error) {
	var out int64
	err := it.step(func(native int64) error { return cdist.Dist_iterator_next_optional(native, &out) })
	return adopt(out, err)
}

// Position returns the position at which the next batch begins. Batches that were made ahead do not count.
func (it *Iterator) Position() (Position, error) {
	native := cdist.NewDist_position()
	defer cdist.DeleteDist_position(native)
	if err := it.with(func(handle int64) error { return cdist.Dist_iterator_position(handle, native) }); err != nil {
		return Position{}, err
	}
	return positionOf(native), nil
}

// Close ends the pass. It waits for a batch that is being made ahead.
func (it *Iterator) Close() error {
	if it != nil {
		it.close()
	}
	return nil
}

// Batches returns an iterator over the remaining batches of the pass. Each batch is closed when the loop body
// ends; call [Value.Retain] to keep it. If an error occurs, it is the last pair.
func (it *Iterator) Batches() iter.Seq2[*Value, error] {
	return func(yield func(*Value, error) bool) {
		for {
			batch, err := it.NextOptional()
			batch.endsItems()
			if err == nil && batch == nil {
				return
			}
			more := yield(batch, err)
			batch.Close()
			if err != nil || !more {
				return
			}
		}
	}
}

// Batches starts a pass and returns an iterator over its batches:
//
//	for batch, err := range dataset.Batches() {
//		if err != nil {
//			return err
//		}
//		losses, err := strategy.RunValues(ctx, step, batch, nil)
//		...
//	}
//
// Each batch is closed when the loop body ends; call [Value.Retain] to keep it. If an error occurs, it is the
// last pair.
func (d *Dataset) Batches() iter.Seq2[*Value, error] {
	return func(yield func(*Value, error) bool) {
		it, err := d.NewIterator()
		if err != nil {
			yield(nil, err)
			return
		}
		defer it.Close()
		it.Batches()(yield)
	}
}
