// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"regexp"
	"strings"
)

// libdist's core words its messages for C. A Go program reads of its own names: those of this package.

var (
	// What a message may have of C's: an options struct and its field, a function, a constant, a name of several
	// words, NULL, and names in capitals that go on where a constant began ("use DIST_SCAN_INCLUSIVE or EXCLUSIVE").
	cWord = regexp.MustCompile(
		`\b(?:options->(?:\w+->)?\w+|[a-z]+->\w+|dist_\w+\.\w+|dist_\w+(?:\(\))?|DIST_[A-Z0-9_]*(?:\.\.\.)?|NULL|[A-Z][A-Z0-9_]+|[a-z0-9]+(?:_[a-z0-9]+)+)`)
	cFields = map[string]bool{}
	// A goroutine that a function was called on keeps its thread.
	threadWords = strings.NewReplacer("the calling thread", "the calling goroutine", "this thread", "this goroutine",
		"the thread that", "the goroutine that")
	// What ends an object.
	closeWords = strings.NewReplacer("destroy it first", "close it first", "destroy them first", "close them first")
)

func init() {
	for _, field := range strings.Fields(`
		as_one_process axis batch_sizes bucketizing_dynamic_shape bytes_per_pack clip_norm communication computation_shape
		computation_stride cross_device device_assignment drop_remainder enable_dynamic_batch_size
		global_batch_size learning_rate num_logical_devices num_replicas_in_sync
		num_workers parameter_device reduce_to_device replication_mode shard_hint shard_policy
		static_shapes worker_batches worker_index logical_device num_input_pipelines input_pipeline_id first_index
		credit_bytes host_list host_name bind_address closures_per_worker colocate_with max_losses max_queued max_replaced max_staleness move_host_threads num_accelerators num_threads replicas_of_workers staging_bytes port_base recorded_events session_address task_type tasks_on_each_host tasks_per_node`) {
		cFields[field] = true
	}
	constantWords["DIST_OK"] = "nil"
	constantWords["DIST_APPLY_SGD"], constantWords["DIST_APPLY_CALLBACK"] = "gradient descent", "ApplyOptions.Function"
	kindWords["DIST_APPLY_"] = "ApplyOptions"
}

// wordTable is a table of C's words and this package's, a pair in each line.
func wordTable(lines string) map[string]string {
	words := strings.Fields(lines)
	table := make(map[string]string, len(words)/2)
	for i := 0; i < len(words); i += 2 {
		table[words[i]] = words[i+1]
	}
	return table
}

// inGo is a message of the core's in this package's words. What a report quotes of a program's own text keeps its
// NULLs; names that begin with dist_ or DIST_ are nobody else's.
func inGo(message string) string {
	message = closeWords.Replace(threadWords.Replace(message))
	if !strings.ContainsAny(message, "_>") && !strings.Contains(message, "NULL") {
		return message
	}
	own, quoted := message, ""
	if at := strings.Index(message, " failed with "); at >= 0 {
		own, quoted = message[:at], message[at:]
	}
	return goWords(own, true) + goWords(quoted, false)
}

func goWords(text string, own bool) string {
	family := "" // of the constant before: "DIST_SCAN_"
	return cWord.ReplaceAllStringFunc(text, func(word string) string {
		if strings.HasPrefix(word, "DIST_") {
			var name string
			name, family = constantWord(word)
			return name
		}
		if name, known := constantWords[family+word]; known && family != "" {
			return name
		}
		if strings.HasPrefix(word, "dist_") {
			return functionWord(word)
		}
		if !own {
			return word
		}
		return ownWord(word)
	})
}

// constantWord is a constant's name, and how the names of its like begin.
func constantWord(word string) (name, family string) {
	if kind, known := kindWords[strings.TrimSuffix(word, "...")]; known {
		return "dist." + kind, ""
	}
	for at := len(word); at > 0; at = strings.LastIndexByte(word[:at-1], '_') + 1 {
		if _, known := kindWords[word[:at]]; known {
			family = word[:at]
			break
		}
	}
	if name, known := constantWords[word]; known {
		return name, family
	}
	return word, family
}

// functionWord is a function's name, or that of an options type, or of its field.
func functionWord(word string) string {
	object, field, hasField := strings.Cut(word, ".")
	if hasField {
		return functionWord(object) + "." + fieldWord(field)
	}
	if name, known := functionWords[strings.TrimSuffix(word, "()")]; known {
		return name
	}
	switch object {
	case "dist_strategy_options", "dist_cpu_options", "dist_host_options", "dist_mesh_options", "dist_worker_options":
		return "Options"
	case "dist_halo":
		return "Halo"
	case "dist_rpc_server_options":
		return "RPCServerOptions"
	case "dist_rpc_client_options":
		return "RPCClientOptions"
	case "dist_ps_variable_options":
		return "PSVariableOptions"
	}
	if strings.HasSuffix(object, "()") {
		return word
	}
	return camel(strings.TrimPrefix(object, "dist_"))
}

func ownWord(word string) string {
	if word == "NULL" {
		return "nil"
	}
	if owner, field, found := strings.Cut(word, "->"); found {
		if owner == "options" {
			return fieldWord(field[strings.LastIndex(field, ">")+1:])
		}
		return camel(owner) + "." + fieldWord(field)
	}
	if _, known := fieldWords[word]; known || cFields[word] {
		return fieldWord(word)
	}
	if rest, out := strings.CutPrefix(word, "out_"); out {
		return "the result (" + rest + ")"
	}
	return word
}

func fieldWord(field string) string {
	if name, known := fieldWords[field]; known {
		return name
	}
	return camel(field)
}

// camel writes the words of a name together: "clip_norm" is ClipNorm.
func camel(name string) string {
	var all strings.Builder
	for _, word := range strings.Split(name, "_") {
		if word != "" {
			all.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return all.String()
}
