// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"iter"

	"libdist.example/dist/internal/cdist"
)

// Position is where a pass is: plain numbers, to be kept wherever the program likes.
type Position struct {
	Pass     int64 // its number: shuffled orders depend on it
	Elements int64 // of the source, that are used up
	Examples int64 // of the element after them, where one is cut into several batches
	Batches  int64 // made of them
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

// Iterator is one pass over a dataset. One call at a time.
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

// NewIterator begins a pass: the first of this dataset is pass 0, the next one pass 1, ...
func (d *Dataset) NewIterator() (*Iterator, error) { return d.newIterator(cdist.Dist_iterator_create) }

// NewIteratorAt begins a pass in its middle: what follows is what would have followed there.
func (d *Dataset) NewIteratorAt(position Position) (*Iterator, error) {
	native := position.native()
	defer cdist.DeleteDist_position(native)
	return d.newIterator(func(dataset int64, out *int64) error {
		return cdist.Dist_iterator_create_at(dataset, native, out)
	})
}

// with calls something of the iterator's handle.
func (it *Iterator) with(call func(native int64) error) error {
	if it == nil {
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

// step is with, of what may wait for other workers: their strategy must not end meanwhile.
func (it *Iterator) step(call func(native int64) error) error {
	var u uses
	defer u.end()
	if it != nil {
		u.busy(it.dataset.workers)
	}
	if u.err != nil {
		return u.err
	}
	return it.with(call)
}

// Next is the next batch: the element's structure with a per-replica value at each leaf (one replica: a tensor).
// ErrOutOfRange: the pass is over.
func (it *Iterator) Next() (*Value, error) {
	var out int64
	err := it.step(func(native int64) error { return cdist.Dist_iterator_next(native, &out) })
	return adopt(out, err)
}

// NextOptional is Next whose end is no error: nil.
func (it *Iterator) NextOptional() (*Value, error) {
	var out int64
	err := it.step(func(native int64) error { return cdist.Dist_iterator_next_optional(native, &out) })
	return adopt(out, err)
}

// Position is where the next batch begins. Batches that are made ahead do not count.
func (it *Iterator) Position() (Position, error) {
	native := cdist.NewDist_position()
	defer cdist.DeleteDist_position(native)
	if err := it.with(func(handle int64) error { return cdist.Dist_iterator_position(handle, native) }); err != nil {
		return Position{}, err
	}
	return positionOf(native), nil
}

// Close ends the pass, after a batch that is being made ahead.
func (it *Iterator) Close() error {
	if it != nil {
		it.close()
	}
	return nil
}

// Batches are the rest of the pass, for a range loop. A batch ends with the loop's body: Retain one that is kept. An
// error is the last pair.
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

// Batches are one pass over the dataset, for a range loop:
//
//	for batch, err := range dataset.Batches() {
//		if err != nil {
//			return err
//		}
//		losses, err := strategy.RunValues(ctx, step, batch, nil)
//		...
//	}
//
// A batch ends with the loop's body: Retain one that is kept. An error is the last pair.
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
