// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"libdist.example/dist"
)

// The lines of a transcript: tests/golden/TRANSCRIPTS.md.

// line is a call, or a function that libdist calls, and what is below it.
type line struct {
	number   int
	name     string
	given    fields
	answered fields
	below    []*line
}

type fields map[string]string

// golden is one case: its calls are below root.
type golden struct {
	area, id string
	root     *line
}

func readTranscripts(path string) ([]golden, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var cases []golden
	var open []*line // the latest of each depth, from the root on
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for number := 1; lines.Scan(); number++ {
		part := strings.Split(lines.Text(), "\t")
		if part[0] == "case" {
			one := golden{text("t:" + part[1]), text("t:" + part[2]), &line{}}
			cases = append(cases, one)
			open = []*line{one.root}
			continue
		}
		depth, err := strconv.Atoi(part[0])
		if err != nil {
			continue // the first and the last line
		}
		if len(open) <= depth {
			return nil, fmt.Errorf("%s:%d: a line of depth %d below nothing", path, number, depth)
		}
		one := &line{number: number, name: part[1], given: fields{}, answered: fields{}}
		side := one.given
		for _, field := range part[2:] {
			if field == "->" {
				side = one.answered
				continue
			}
			key, value, _ := strings.Cut(field, "=")
			side[key] = value
		}
		open[depth].below = append(open[depth].below, one)
		open = append(open[:depth+1], one)
	}
	return cases, lines.Err()
}

// text is that of a literal "t:..."; "" for "-".
func text(literal string) string {
	decoded, err := url.PathUnescape(strings.TrimPrefix(literal, "t:"))
	if err != nil || literal == "-" {
		return ""
	}
	return decoded
}

func (f fields) text(key string) string { return text(f[key]) }

// int is 0 where there is no such field.
func (f fields) int(key string) int {
	n, _ := strconv.Atoi(f[key])
	return n
}

// array are the literals of "(a b)"; nil where there is none.
func (f fields) array(key string) []string {
	literal := f[key]
	if literal == "" || literal == "-" {
		return nil
	}
	return append([]string{}, strings.Fields(strings.Trim(literal, "()"))...)
}

func (f fields) texts(key string) []string {
	list := f.array(key)
	for i := range list {
		list[i] = text(list[i])
	}
	return list
}

func (f fields) ints(key string) []int {
	list := f.array(key)
	if list == nil {
		return nil
	}
	numbers := make([]int, len(list))
	for i, literal := range list {
		numbers[i], _ = strconv.Atoi(literal)
	}
	return numbers
}

// @every dtype
var dtypeNames = map[string]dist.DType{
	"f16": dist.F16, "bf16": dist.BF16, "f32": dist.F32, "f64": dist.F64, "i8": dist.I8, "u8": dist.U8,
	"i16": dist.I16, "u16": dist.U16, "i32": dist.I32, "u32": dist.U32, "i64": dist.I64, "u64": dist.U64,
	"c64": dist.Complex64, "bool": dist.Bool,
}

// tensorOf is the tensor of a literal; of a shape "f32:2,3" one of zeros.
func tensorOf(literal string) (dist.RawTensor, error) {
	part := strings.Split(literal, ":")
	dtype, known := dtypeNames[part[0]]
	if !known || len(part) < 2 {
		return dist.RawTensor{}, fmt.Errorf("%q is no tensor", literal)
	}
	tensor := dist.RawTensor{DType: dtype, Shape: []int{}}
	count := 1
	if part[1] != "" {
		for _, size := range strings.Split(part[1], ",") {
			n, _ := strconv.Atoi(size)
			tensor.Shape = append(tensor.Shape, n)
			count *= n
		}
	}
	if len(part) == 2 {
		tensor.Data = make([]byte, count*dtype.Size())
		return tensor, nil
	}
	data, err := hex.DecodeString(part[2])
	tensor.Data = data
	return tensor, err
}

// array is the tensor of a field, for a call; nil where there is none.
func (f fields) tensor(key string) dist.Array {
	if literal := f[key]; literal != "" && literal != "-" {
		if tensor, err := tensorOf(literal); err == nil {
			return tensor
		}
	}
	return nil
}

func (f fields) tensors(key string) []dist.Array {
	var list []dist.Array
	for _, literal := range f.array(key) {
		tensor, _ := tensorOf(literal)
		list = append(list, tensor)
	}
	return list
}

// choice is a field that is 1, -1 or 0 in C.
func choice(f fields, key string) dist.Choice {
	return map[int]dist.Choice{1: dist.Yes, -1: dist.No}[f.int(key)]
}
