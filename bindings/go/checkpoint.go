// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"iter"
	"slices"

	"libdist.example/dist/internal/cdist"
)

// CheckpointOptions are the rare choices for a checkpoint.
type CheckpointOptions struct {
	Names []string // of the variables in the file; nil: their own
	// Position: where the input is, to be saved; on loading it is set to where it was. nil: left out.
	Position *Position
	Metadata map[string]string // saving: texts of the program's for the file
	// Sharded: saving: the path becomes an index, and each worker writes the shard of its part of the variables.
	Sharded bool
}

// CheckpointSave writes a checkpoint: one safetensors file, or an index and a shard of each worker, which may be loaded with
// any number of replicas and any strategy. A file that is there is replaced in one step. options may be nil.
func (s *Strategy) CheckpointSave(path string, variables []*Variable, options *CheckpointOptions) error {
	return s.checkpoint(path, variables, options, cdist.Dist_checkpoint_save)
}

// CheckpointLoad gives variables the values that a file has for them. Everything is checked first.
func (s *Strategy) CheckpointLoad(path string, variables []*Variable, options *CheckpointOptions) error {
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
	u.texts(options.Names)
	for key, text := range options.Metadata {
		u.texts([]string{key, text})
	}
	handles := make([]int64, len(variables))
	for i, v := range variables {
		handles[i] = u.variable(v)
	}
	if u.err != nil {
		return u.err
	}
	native := cdist.NewDist_checkpoint_options()
	defer cdist.DeleteDist_checkpoint_options(native)
	if len(options.Names) > 0 {
		native.Set_names(options.Names, int64(len(options.Names)))
	}
	var keys, texts []string
	for key := range options.Metadata {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		texts = append(texts, options.Metadata[key])
	}
	native.Set_metadata_keys(keys, int64(len(keys)))
	native.Set_metadata_texts(texts, int64(len(texts)))
	if options.Sharded {
		native.SetSharded(1)
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

// Checkpoint is a file of tensors, open for reading. It may outlive the strategy.
type Checkpoint struct {
	object
}

// OpenCheckpoint opens a safetensors file, or the index of several, to see what is in it.
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

// with calls something of the checkpoint's handle.
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

// Close closes the file.
func (c *Checkpoint) Close() error {
	if c != nil {
		c.close()
	}
	return nil
}

// Len is how many tensors the file has; 0 for nil and for a closed one.
func (c *Checkpoint) Len() (n int) {
	_ = c.with(func(native int64) error {
		n = int(cdist.Dist_checkpoint_size(native))
		return nil
	})
	return n
}

// Name is the name of a tensor, in the order of their data; "" where there is none.
func (c *Checkpoint) Name(index int) (name string) {
	_ = c.with(func(native int64) error {
		name = cdist.Dist_checkpoint_name(native, int64(index))
		return nil
	})
	return name
}

// Spec is a tensor's dtype and shape, without its data. DType 0: one that libdist has not.
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

// Read is a tensor of the file.
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

// Map is a tensor in the file's own memory, which replicas and processes share; it is not to be written. It stays as it is where
// another file takes this one's place; where others write into the file, Read it. verify compares its checksum, which reads
// all of it.
func (c *Checkpoint) Map(name string, verify bool) (*Value, error) {
	return c.mapped(verify, func(native int64, options cdist.Dist_checkpoint_map_options, out *int64) error {
		if err := checkText(name); err != nil {
			return err
		}
		return cdist.Dist_checkpoint_map(native, name, options, out)
	})
}

// MapAll is all tensors in the file's own memory, as a dictionary by their names: Map.
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

// Metadata is the text under a key; "" where there is none.
func (c *Checkpoint) Metadata(key string) (text string) {
	_ = c.with(func(native int64) error {
		if checkText(key) == nil { // else no file has it
			text = cdist.Dist_checkpoint_metadata(native, key)
		}
		return nil
	})
	return text
}

// AllMetadata are the file's texts under their keys, libdist's among them, in the order of the file.
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
