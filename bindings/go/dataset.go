// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"

	"libdist.example/dist/internal/cdist"
)

// Dataset is a source of batches, each split over the replicas.
type Dataset struct {
	object
	sources []*sourceCall // whose errors its iterators may get
	workers *Strategy     // whose other workers a step waits for; nil: for none
}

// SourceFunc makes element `index` (0, 1, 2, ... in each pass), which is taken over: a tensor, or a list, tuple or
// dictionary. io.EOF ends the pass. It is called on one thread at a time, maybe not the caller's, ahead of who asks.
type SourceFunc = func(index int64) (*Value, error)

// FileSourceFunc makes element `index` of the file with number `file` in the list; io.EOF ends the file.
type FileSourceFunc = func(file int, name string, index int64) (*Value, error)

// DatasetFunc makes the dataset of one input pipeline, which is taken over.
type DatasetFunc = func(context InputContext) (*Dataset, error)

// sourceCall is what a source's token stands for.
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

func (s *Strategy) newDataset(native int64, sources ...*sourceCall) *Dataset {
	d := &Dataset{sources: sources}
	if s.hasPeers() {
		d.workers = s
	}
	d.open(native, cdist.Dist_dataset_destroy, nil)
	return d
}

// own is the error of a call that may have read a source.
func (d *Dataset) own(err error) error {
	native := fromNative(err)
	for _, source := range d.sources {
		if own := source.own(native); own != native {
			return own
		}
	}
	return native
}

// NewDataset makes a dataset of rows: element i is row i of each tensor (features, labels, ...), whose data are copied.
// options may be nil.
func (s *Strategy) NewDataset(tensors []Array, options *DatasetOptions) (*Dataset, error) {
	var u uses
	defer u.end()
	strategy, numbers := u.strategy(s), u.tensors(tensors)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := options.native(func(native cdist.Dist_dataset_options) error {
		return cdist.Dist_dataset_create_from_tensors(strategy, numbers, int64(len(tensors)), native, &out)
	})
	if err != nil {
		return nil, fromNative(err)
	}
	return s.newDataset(out), nil
}

// NewDatasetFromCallback makes a dataset whose elements fn makes.
func (s *Strategy) NewDatasetFromCallback(fn SourceFunc, options *DatasetOptions) (*Dataset, error) {
	return s.fromSource(&sourceCall{element: fn}, options,
		func(strategy, token int64, native cdist.Dist_dataset_options, out *int64) error {
			return cdist.Dist_dataset_create_from_callback(strategy, token, native, out)
		})
}

// NewDatasetFromFiles makes a dataset of the elements of files, which fn reads.
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
	strategy := u.strategy(s)
	if u.err != nil {
		return nil, u.err
	}
	token := registerIf(source.element != nil || source.file != nil, source) // until libdist releases it
	var out int64
	err := options.native(func(native cdist.Dist_dataset_options) error { return create(strategy, token, native, &out) })
	if err != nil {
		forget(token)
		return nil, source.own(err)
	}
	return s.newDataset(out, source), nil
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

// NewDatasetFromFunction makes a dataset of what a function makes (TensorFlow: distribute_datasets_from_function): its
// batches are given to replicas whole. The function is called here, once, or with ReplicationMode PerReplica R times.
func (s *Strategy) NewDatasetFromFunction(fn DatasetFunc, options *DatasetOptions) (*Dataset, error) {
	var u uses
	defer u.end()
	strategy := u.busy(s)
	if u.err != nil {
		return nil, u.err
	}
	c := &datasetCall{fn: fn}
	token := registerIf(fn != nil, c)
	defer forget(token)
	var out int64
	err := options.native(func(native cdist.Dist_dataset_options) error {
		return cdist.Dist_dataset_create_from_function(strategy, token, native, &out)
	})
	if err != nil {
		return nil, c.own(err)
	}
	return s.newDataset(out, c.sources...), nil
}

// with calls something of the dataset's handle.
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

// Close ends a dataset; its iterators go on.
func (d *Dataset) Close() error {
	if d != nil {
		d.close()
	}
	return nil
}

// ElementSpec is what batches are like: their structure, with a text "f32[?, 4]" for each tensor of each replica.
func (d *Dataset) ElementSpec() (*Value, error) {
	var out int64
	err := d.with(func(native int64) error { return cdist.Dist_dataset_element_spec(native, &out) })
	return adopt(out, err)
}

// DatasetReduceFunc takes what was made of all batches so far and the next one, and returns what they are together, which
// is taken over: maybe state.Retain(). Both end with the call.
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

// Reduce makes one value of a whole pass. initial may be nil.
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

// CheckShards reads what each of the dataset's workers would read in one pass, and checks that every example comes exactly
// once: ErrDataLoss. Of a source of the program's not more than limit elements are made (0: no limit).
func (d *Dataset) CheckShards(limit int64) error {
	return d.with(func(native int64) error { return cdist.Dist_dataset_check_shards(native, limit) })
}

// Explain says as text who reads what of the dataset.
func (d *Dataset) Explain() (text string, err error) {
	err = d.with(func(native int64) error {
		text, err = written(func(t cdist.Text) error { return t.Explain_dataset(native) })
		return err
	})
	return text, err
}
