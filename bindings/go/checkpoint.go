// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"iter"
	"maps"
	"slices"

	"libdist.example/dist/internal/cdist"
)

// SaveCheckpoint writes the values of variables to a checkpoint: one safetensors file, or an index and one
// shard per worker. Any strategy with any number of replicas can load it. An existing file is replaced
// atomically. options may be nil.
func (s *Strategy) SaveCheckpoint(path string, variables []*Variable, options *CheckpointOptions) error {
	return s.checkpoint(path, variables, options, cdist.Dist_checkpoint_save)
}

// LoadCheckpoint loads the values of variables from a checkpoint. It checks the whole file, including its
// checksums, before it changes a variable. options may be nil.
func (s *Strategy) LoadCheckpoint(path string, variables []*Variable, options *CheckpointOptions) error {
	return s.checkpoint(path, variables, options, cdist.Dist_checkpoint_load)
}

func (s *Strategy) checkpoint(path string, variables []*Variable, options *CheckpointOptions,
	call func(int64, string, []int64, int64, cdist.Dist_checkpoint_options) error) error {
	if options == nil {
		options = &CheckpointOptions{}
	}
	if options.Names != nil && len(options.Names) != len(variables) {
		return newError(ErrInvalidArgument, "%d names for %d variables: give one for each",
			len(options.Names), len(variables))
	}
	var u uses
	defer u.end()
	strategy, path := u.strategy(s), u.text(path)
	handles := make([]int64, len(variables))
	for i, v := range variables {
		handles[i] = u.variable(v)
	}
	native := options.native(&u)
	defer cdist.DeleteDist_checkpoint_options(native)
	if u.err != nil {
		return u.err
	}
	if options.Position == nil {
		return fromNative(call(strategy, path, handles, int64(len(handles)), native))
	}
	position := options.Position.native()
	defer cdist.DeleteDist_position(position)
	native.SetPosition(position)
	err := fromNative(call(strategy, path, handles, int64(len(handles)), native))
	if err == nil {
		*options.Position = positionOf(position)
	}
	return err
}

// metadata sets the texts of a checkpoint, sorted by key.
func (u *uses) metadata(native cdist.Dist_checkpoint_options, given map[string]string) {
	keys := slices.Sorted(maps.Keys(given))
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = given[key]
	}
	native.Set_metadata_keys(u.texts(keys), int64(len(keys)))
	native.Set_metadata_texts(u.texts(texts), int64(len(texts)))
}

// A Checkpoint is a file of tensors that is open for reading. It may outlive the strategy.
type Checkpoint struct {
	object
}

// OpenCheckpoint opens a safetensors file, or the index of a sharded checkpoint, to inspect and read its
// tensors. The caller must close the checkpoint.
func (s *Strategy) OpenCheckpoint(path string) (*Checkpoint, error) {
	var u uses
	defer u.end()
	strategy, path := u.strategy(s), u.text(path)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := cdist.Dist_checkpoint_open(strategy, path, &out); err != nil {
		return nil, fromNative(err)
	}
	c := &Checkpoint{}
	c.open(out, cdist.Dist_checkpoint_destroy, nil)
	return c, nil
}

// with calls a function with the checkpoint's handle.
func (c *Checkpoint) with(call func(native int64) error) error {
	var u uses
	defer u.end()
	var native int64
	if c != nil {
		native = u.take(&c.object, "checkpoint")
	}
	if u.err != nil {
		return u.err
	}
	return fromNative(call(native))
}

// Close closes the file. Values that were read or mapped from it stay valid.
func (c *Checkpoint) Close() error {
	if c != nil {
		c.close()
	}
	return nil
}

// Len returns the number of tensors in the file; 0 for a nil or closed checkpoint.
func (c *Checkpoint) Len() (n int) {
	_ = c.with(func(native int64) error {
		n = int(cdist.Dist_checkpoint_size(native))
		return nil
	})
	return n
}

// Name returns the name of the tensor with the given index, in the order of the data, or "" if there is none.
func (c *Checkpoint) Name(index int) (name string) {
	_ = c.with(func(native int64) error {
		name = cdist.Dist_checkpoint_name(native, int64(index))
		return nil
	})
	return name
}

// Spec returns the dtype and shape of a tensor, without its data. The DType is 0 if libdist does not support
// the tensor's element type.
func (c *Checkpoint) Spec(name string) (spec RawTensor, err error) {
	err = c.with(func(native int64) error {
		if err := checkText(name); err != nil {
			return err
		}
		numbers := make([]int64, mostNumbers)
		if err := cdist.Dist_checkpoint_spec(native, name, numbers); err != nil {
			return err
		}
		spec = unpack(numbers, nil)
		return nil
	})
	return spec, err
}

// Read reads a tensor of the file into memory and verifies its checksum. The caller must close the value.
func (c *Checkpoint) Read(name string) (*Value, error) {
	var out int64
	err := c.with(func(native int64) error {
		if err := checkText(name); err != nil {
			return err
		}
		return cdist.Dist_checkpoint_read(native, name, &out)
	})
	return adopt(out, err)
}

// Map returns a tensor that uses the memory of the mapped file, without copying it. Replicas, and other
// processes that map the file, share this memory; do not write to it. The value stays valid if the file is
// replaced by renaming another file over it. If other programs may write to the file itself, use
// [Checkpoint.Read]. If verify is true, Map verifies the checksum, which reads the whole tensor. The caller
// must close the value.
func (c *Checkpoint) Map(name string, verify bool) (*Value, error) {
	return c.mapped(verify, func(native int64, options cdist.Dist_checkpoint_map_options, out *int64) error {
		if err := checkText(name); err != nil {
			return err
		}
		return cdist.Dist_checkpoint_map(native, name, options, out)
	})
}

// MapAll maps all tensors of the file, like [Checkpoint.Map], and returns them as a dictionary by name. The
// caller must close the value.
func (c *Checkpoint) MapAll(verify bool) (*Value, error) {
	return c.mapped(verify, func(native int64, options cdist.Dist_checkpoint_map_options, out *int64) error {
		return cdist.Dist_checkpoint_map_all(native, options, out)
	})
}

func (c *Checkpoint) mapped(verify bool,
	call func(native int64, options cdist.Dist_checkpoint_map_options, out *int64) error) (*Value, error) {
	options := cdist.NewDist_checkpoint_map_options()
	defer cdist.DeleteDist_checkpoint_map_options(options)
	if verify {
		options.SetVerify(1)
	}
	var out int64
	err := c.with(func(native int64) error { return call(native, options, &out) })
	return adopt(out, err)
}

// Metadata returns the text stored under a key, or "" if there is none.
func (c *Checkpoint) Metadata(key string) (text string) {
	_ = c.with(func(native int64) error {
		if checkText(key) == nil { // else no file has it
			text = cdist.Dist_checkpoint_metadata(native, key)
		}
		return nil
	})
	return text
}

// AllMetadata returns an iterator over the keys and texts of the file, including those of libdist, in the
// order of the file.
func (c *Checkpoint) AllMetadata() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		n := 0
		_ = c.with(func(native int64) error {
			n = int(cdist.Dist_checkpoint_num_metadata(native))
			return nil
		})
		for i := range n {
			var key string
			_ = c.with(func(native int64) error {
				key = cdist.Dist_checkpoint_metadata_key(native, int64(i))
				return nil
			})
			if !yield(key, c.Metadata(key)) {
				return
			}
		}
	}
}
