// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"libdist.example/dist"
)

// literalOf is a tensor as a transcript has it.
func literalOf(tensor dist.RawTensor) string {
	name := ""
	for literal, dtype := range dtypeNames {
		if dtype == tensor.DType {
			name = literal
		}
	}
	sizes := make([]string, len(tensor.Shape))
	for i, size := range tensor.Shape {
		sizes[i] = fmt.Sprint(size)
	}
	return name + ":" + strings.Join(sizes, ",") + ":" + hex.EncodeToString(tensor.Data)
}

// sameTensor compares bits; of NaNs any are the same.
func sameTensor(literal string, tensor dist.RawTensor) error {
	expected, err := tensorOf(literal)
	if err != nil {
		return err
	}
	if got := literalOf(tensor); got == literal {
		return nil
	} else if expected.DType != tensor.DType || !slices.Equal(expected.Shape, tensor.Shape) {
		return fmt.Errorf("is %.200s, expected %.200s", got, literal)
	}
	size := tensor.DType.Size()
	if tensor.DType == dist.Complex64 {
		size = 4
	}
	for at := 0; at < len(expected.Data); at += size {
		want, got := expected.Data[at:at+size], tensor.Data[at:at+size]
		if string(want) != string(got) && !(isNaN(tensor.DType, want) && isNaN(tensor.DType, got)) {
			return fmt.Errorf("is %.200s, expected %.200s", literalOf(tensor), literal)
		}
	}
	return nil
}

func isNaN(dtype dist.DType, bits []byte) bool {
	switch dtype {
	case dist.F32, dist.Complex64:
		f := math.Float32frombits(binary.LittleEndian.Uint32(bits))
		return f != f
	case dist.F64:
		f := math.Float64frombits(binary.LittleEndian.Uint64(bits))
		return f != f
	case dist.F16:
		f := dist.Float16(binary.LittleEndian.Uint16(bits)).Float32()
		return f != f
	case dist.BF16:
		f := dist.BFloat16(binary.LittleEndian.Uint16(bits)).Float32()
		return f != f
	}
	return false
}

// tree is what a value is: a word, or a kind and what is in it.
type tree struct {
	word  string
	items []tree
}

func parseTree(literal string) tree {
	tokens := strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(literal))
	at := 0
	var parse func() tree
	parse = func() tree {
		if at >= len(tokens) {
			return tree{}
		}
		if tokens[at] != "(" {
			at++
			return tree{word: tokens[at-1]}
		}
		one := tree{word: "(" + tokens[at+1]}
		for at += 2; at < len(tokens) && tokens[at] != ")"; {
			one.items = append(one.items, parse())
		}
		at++
		return one
	}
	return parse()
}

var kindNames = map[string]dist.ValueKind{
	"(list": dist.ListValue, "(tuple": dist.TupleValue, "(per_replica": dist.PerReplicaValue,
	"(mirrored": dist.MirroredValue, "(dict": dist.DictValue, "(indexed_slices": dist.IndexedSlicesValue,
	"(ragged": dist.RaggedValue, "(sparse": dist.SparseValue, "none": dist.NoneValue, "object": dist.ObjectValue,
}

// matches says what is different of a value.
func (p *player) matches(expected tree, v *dist.Value) error {
	word := expected.word
	if strings.HasPrefix(word, "t:") {
		if v.Kind() != dist.TextValue || v.Text() != text(word) {
			return fmt.Errorf("is %v, expected the text %q", v, text(word))
		}
		return nil
	}
	kind, known := kindNames[word]
	switch {
	case word == "(sharded":
		return p.matchesSharded(expected.items, v)
	case known && v.Kind() != kind:
		return fmt.Errorf("is %.200s, expected a %s", v, word)
	case !known && word != "" && word[0] == 'x':
		return p.bind(word, v.Variable())
	case !known:
		tensor, err := v.Tensor()
		if err != nil {
			return err
		}
		return sameTensor(word, tensor)
	}
	items := expected.items
	if kind == dist.DictValue {
		items = nil
		for i := 1; i < len(expected.items); i += 2 {
			if key := text(expected.items[i-1].word); v.Key(len(items)) != key {
				return fmt.Errorf("key %d is %q, expected %q", len(items), v.Key(len(items)), key)
			}
			items = append(items, expected.items[i])
		}
	}
	if v.Len() != len(items) {
		return fmt.Errorf("has %d items, expected %d: %.200s", v.Len(), len(items), v)
	}
	for i, item := range v.Items() {
		if err := p.matches(items[i], item); err != nil {
			return fmt.Errorf("%s: item %d: %w", word, i, err)
		}
	}
	return nil
}
