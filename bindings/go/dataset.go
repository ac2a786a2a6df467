// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"

	"libdist.example/dist/internal/cdist"
)

// A Dataset produces batches, each of which is split over the replicas.
type Dataset struct {
	object
	sources []*sourceCall // their errors are returned by iterators
	workers *Strategy     // a step waits for its other workers; nil = none
}

// SourceFunc returns element index (0, 1, 2, ... in each pass): a tensor, or a list, tuple or dictionary.
// libdist takes ownership of it. Return [io.EOF] to end the pass. libdist calls the function from one thread
// at a time, which may differ from the thread that requests a batch, and may call it ahead of time.
type SourceFunc = func(index int64) (*Value, error)

// FileSourceFunc returns element index of a file, given by its number in the list and its name. Return
// [io.EOF] to end the file. Otherwise it is like a [SourceFunc].
type FileSourceFunc = func(file int, name string, index int64) (*Value, error)

// DatasetFunc creates the dataset of one input pipeline. libdist takes ownership of it.
type DatasetFunc = func(context InputContext) (*Dataset, error)

// sourceCall is the object behind the token of a source.
type sourceCall struct {
	failures
	element SourceFunc
	file    FileSourceFunc
}

// Source is called by libdist for an element.
func (callbacks) Source(token, index int64) int64 {
	c := registered[*sourceCall](token)
	return c.makes(func() (*Value, error) { return c.element(index) })
}

// File_source is called by libdist for an element of a file.
func (callbacks) File_source(token, file int64, name string, index int64) int64 {
	c := registered[*sourceCall](token)
	return c.makes(func() (*Value, error) { return c.file(int(file), name, index) })
}

func (s *Strategy) newDataset(u *uses, native int64, sources ...*sourceCall) *Dataset {
	d := &Dataset{sources: sources}
	if s.hasPeers() {
		d.workers = s
	}
	d.given = u.keep()
	d.open(native, cdist.Dist_dataset_destroy, nil)
	return d
}

// own returns the error of a call that may have called a source.
func (d *Dataset) own(err error) error {
	native := fromNative(err)
	for _, source := range d.sources {
		if own := source.own(native); own != native {
			return own
		}
	}
	return native
}

// NewDataset returns a dataset of rows: element i is row i of each tensor (features, labels, ...). The data
// are copied. options may be nil. Here and in the functions below, the caller must close the dataset.
func (s *Strategy) NewDataset(tensors []Array, options *DatasetOptions) (*Dataset, error) {
	var u uses
	defer u.end()
	strategy, numbers, native := u.strategy(s), u.tensors(tensors), options.native(&u)
	defer cdist.DeleteDist_dataset_options(native)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := cdist.Dist_dataset_create_from_tensors(strategy, numbers, int64(len(tensors)), native, &out)
	if err != nil {
		return nil, fromNative(err)
	}
	return s.newDataset(&u, out), nil
}

// NewDatasetFromCallback returns a dataset whose elements fn produces. options may be nil.
func (s *Strategy) NewDatasetFromCallback(fn SourceFunc, options *DatasetOptions) (*Dataset, error) {
	return s.fromSource(&sourceCall{element: fn}, options,
		func(strategy, token int64, native cdist.Dist_dataset_options, out *int64) error {
			return cdist.Dist_dataset_create_from_callback(strategy, token, native, out)
		})
}

// NewDatasetFromFiles returns a dataset of the elements of files, which fn reads. options may be nil.
func (s *Strategy) NewDatasetFromFiles(names []string, fn FileSourceFunc, options *DatasetOptions) (*Dataset, error) {
	for _, name := range names {
		if err := checkText(name); err != nil {
			return nil, err
		}
	}
	return s.fromSource(&sourceCall{file: fn}, options,
		func(strategy, token int64, native cdist.Dist_dataset_options, out *int64) error {
			return cdist.Dist_dataset_create_from_files(strategy, names, int64(len(names)), token, native, out)
		})
}

func (s *Strategy) fromSource(source *sourceCall, options *DatasetOptions,
	create func(strategy, token int64, native cdist.Dist_dataset_options, out *int64) error) (*Dataset, error) {
	var u uses
	defer u.end()
	strategy, native := u.strategy(s), options.native(&u)
	defer cdist.DeleteDist_dataset_options(native)
	if u.err != nil {
		return nil, u.err
	}
	token := registerIf(source.element != nil || source.file != nil, source) // until libdist releases it
	var out int64
	if err := create(strategy, token, native, &out); err != nil {
		forget(token)
		return nil, source.own(err)
	}
	return s.newDataset(&u, out, source), nil
}

type datasetCall struct {
	failures
	fn      DatasetFunc
	sources []*sourceCall
}

// Dataset is called by libdist for NewDatasetFromFunction.
func (callbacks) Dataset(token int64, numPipelines, pipeline, numReplicas int) int64 {
	c := registered[*datasetCall](token)
	var native int64
	if status := c.callback(func() error {
		d, err := c.fn(InputContext{numPipelines, pipeline, numReplicas})
		if err != nil || d == nil {
			return err
		}
		var whole bool
		if native, whole = d.surrender(); !whole {
			return newError(ErrFailedPrecondition, "the dataset that the function returned is closed, or in use")
		}
		c.sources = append(c.sources, d.sources...)
		return nil
	}); status != 0 {
		return -int64(status)
	}
	return native
}

// NewDatasetFromFunction returns a dataset made of the datasets that fn returns (TensorFlow:
// distribute_datasets_from_function). Each of their batches goes to one replica as a whole. The function is
// called during this call: once, or R times if options.ReplicationMode is [PerReplica].
func (s *Strategy) NewDatasetFromFunction(fn DatasetFunc, options *DatasetOptions) (*Dataset, error) {
	var u uses
	defer u.end()
	strategy, native := u.busy(s), options.native(&u)
	defer cdist.DeleteDist_dataset_options(native)
	if u.err != nil {
		return nil, u.err
	}
	c := &datasetCall{fn: fn}
	token := registerIf(fn != nil, c)
	defer forget(token)
	var out int64
	if err := cdist.Dist_dataset_create_from_function(strategy, token, native, &out); err != nil {
		return nil, c.own(err)
	}
	return s.newDataset(&u, out, c.sources...), nil
}

// with calls a function with the dataset's handle.
func (d *Dataset) with(call func(native int64) error) error {
	if d == nil {
		return fromNative(call(0))
	}
	var u uses
	defer u.end()
	native := u.take(&d.object, "dataset")
	if u.err != nil {
		return u.err
	}
	defer runtime.KeepAlive(d)
	return d.own(call(native))
}

// Close closes the dataset. Its iterators stay valid.
func (d *Dataset) Close() error {
	if d != nil {
		d.close()
	}
	return nil
}

// ElementSpec describes the batches: their structure, with a text such as "f32[?, 4]" for each tensor of each
// replica. The caller must close the value.
func (d *Dataset) ElementSpec() (*Value, error) {
	var out int64
	err := d.with(func(native int64) error { return cdist.Dist_dataset_element_spec(native, &out) })
	return adopt(out, err)
}

// DatasetReduceFunc combines a state, which is the result for all previous batches, with the next batch.
// libdist takes ownership of the result, which may be state.Retain(). Both arguments are valid only during
// the call.
type DatasetReduceFunc = func(state, batch *Value) (*Value, error)

type datasetReduceCall struct {
	failures
	fn DatasetReduceFunc
}

// Dataset_reduce is called by libdist for Dataset.Reduce.
func (callbacks) Dataset_reduce(token, state, batch int64) int64 {
	c := registered[*datasetReduceCall](token)
	return c.makes(func() (*Value, error) {
		before, next := lend(state), lend(batch)
		defer before.Close()
		defer next.Close()
		return c.fn(before, next)
	})
}

// Reduce combines all batches of a pass to one value by calling fn for each batch. initial is the first state
// and may be nil. The caller must close the result.
func (d *Dataset) Reduce(initial *Value, fn DatasetReduceFunc) (*Value, error) {
	var u uses
	defer u.end()
	state := u.value(initial)
	if d != nil {
		u.busy(d.workers)
	}
	if u.err != nil {
		return nil, u.err
	}
	c := &datasetReduceCall{fn: fn}
	token := registerIf(fn != nil, c)
	defer forget(token)
	var out int64
	err := d.with(func(native int64) error {
		return c.own(cdist.Dist_dataset_reduce(native, state, token, &out))
	})
	return adopt(out, err)
}

// CheckShards reads what each of the dataset's workers would read in one pass, and checks that every example
// occurs exactly once. Otherwise it fails with [ErrDataLoss]. For a dataset whose elements a function
// produces, it requests at most limit elements; 0 means no limit.
func (d *Dataset) CheckShards(limit int64) error {
	return d.with(func(native int64) error { return cdist.Dist_dataset_check_shards(native, limit) })
}

// Explain returns a description of how the dataset is read, for people to read: its source, how batches are
// made, and what each replica gets.
func (d *Dataset) Explain() (text string, err error) {
	err = d.with(func(native int64) error {
		text, err = written(func(t cdist.Text) error { return t.Explain_dataset(native) })
		return err
	})
	return text, err
}
