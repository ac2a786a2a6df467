// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"math"
	"time"

	"libdist.example/dist/internal/cdist"
)

// Kind says how values and variables are placed.
type Kind int

// The kinds of strategy.
const (
	Mirrored       Kind = 0 // R replicas; every variable has R equal copies
	OneDevice      Kind = 1 // one replica, for programs that run on one or many
	Default        Kind = 2 // one replica: what a program has that never chose a strategy
	CentralStorage Kind = 3 // R replicas; every variable has one copy, which all of them read
	Mesh           Kind = 4 // as Mirrored, of replicas made of logical devices (TensorFlow: TPUStrategy)
)

// Threads says on which threads the replicas run.
type Threads int

// The choices of threads.
const (
	CallerThread   Threads = 0 // Run's caller is replica 0; the others are library threads
	LibraryThreads Threads = 1 // all replicas are library threads
	Goroutines     Threads = 2 // each replica is a goroutine: Run starts them, or Strategy.Enter takes yours
)

// Placement says where library threads run.
type Placement int

// The placements.
const (
	Free  Placement = 0 // wherever the system puts them
	Cores Placement = 1 // each on one core of its own
)

// Collective says which collective an error speaks of.
type Collective int

// The collectives, and the end of the replica function, where all meet too.
const (
	CollectiveNone          Collective = 0
	CollectiveAllReduce     Collective = 1
	CollectiveBroadcast     Collective = 2
	CollectiveBarrier       Collective = 3
	CollectiveMergeCall     Collective = 4
	CollectiveReturn        Collective = 5
	CollectiveReduce        Collective = 6
	CollectiveReduceScatter Collective = 7
	CollectiveAllGather     Collective = 8
	CollectiveGather        Collective = 9
	CollectiveScatter       Collective = 10
	CollectiveAllToAll      Collective = 11
	CollectiveScan          Collective = 12
	CollectivePermute       Collective = 13
	CollectiveReduceApply   Collective = 14
	CollectiveHaloExchange  Collective = 15
	CollectiveReshard       Collective = 16
)

// Numerics says what the bits of a sum depend on.
type Numerics int

// The numerics.
const (
	Ordered      Numerics = 0 // the contributions in the order of replica ids
	Reproducible Numerics = 1 // the contributions alone: added exactly, rounded once
)

// ScanKind says where a scan begins.
type ScanKind int

// The kinds of scan.
const (
	Inclusive ScanKind = 0 // replica r's own contribution is in its result
	Exclusive ScanKind = 1 // only those of replicas 0 .. r-1 are
)

// ValueKind says what a value is.
type ValueKind int

// The kinds of values.
const (
	TensorValue        ValueKind = 1
	PerReplicaValue    ValueKind = 2 // one value for each replica
	MirroredValue      ValueKind = 3 // the same, known to be equal
	ListValue          ValueKind = 4
	DictValue          ValueKind = 5
	VariableValue      ValueKind = 6
	NoneValue          ValueKind = 7 // nothing: all of them count as the same value
	TupleValue         ValueKind = 8
	TextValue          ValueKind = 9
	ObjectValue        ValueKind = 10 // anything of the program's own, passed through
	IndexedSlicesValue ValueKind = 11 // rows of a larger tensor: values, indices, dense shape
	RaggedValue        ValueKind = 12 // rows of different lengths: values, row splits
	SparseValue        ValueKind = 13 // single elements of a tensor: indices, values, dense shape
	ShardedValue       ValueKind = 14 // a tensor, and which logical device of a replica has which part of it
)

// AssignHow says how an assignment changes a variable.
type AssignHow int

// The assignments.
const (
	Assign    AssignHow = 1
	AssignAdd AssignHow = 2
	AssignSub AssignHow = 3
)

// ScatterHow says how rows change a variable: row indices[k] becomes op(that row, values[k]).
type ScatterHow int

// The scatters.
const (
	ScatterAdd         ScatterHow = 1
	ScatterSub         ScatterHow = 2
	ScatterUpdate      ScatterHow = 3
	ScatterMul         ScatterHow = 4
	ScatterDiv         ScatterHow = 5
	ScatterMin         ScatterHow = 6
	ScatterMax         ScatterHow = 7
	ScatterBatchUpdate ScatterHow = 8 // ScatterUpdate under leading dimensions that all share
)

// MetricKind says what a metric computes over all updates of all replicas.
type MetricKind int

// The kinds of metrics.
const (
	MetricSum      MetricKind = 1
	MetricMean     MetricKind = 2 // weighted, where weights are given
	MetricAccuracy MetricKind = 3 // the share of updates whose label is the prediction
)

// LogLevel says how much a log line matters.
type LogLevel int

// The levels.
const (
	LogError   LogLevel = 1
	LogWarning LogLevel = 2
	LogInfo    LogLevel = 3
)

// DeviceOrder says in which order replicas and their logical devices lie in a mesh.
type DeviceOrder int

// The orders.
const (
	DeviceOrderAuto DeviceOrder = 0 // rings where they fit, else blocks
	DeviceOrderRing DeviceOrder = 1 // each a neighbour of the next; an error where they do not fit
	DeviceOrderMesh DeviceOrder = 2 // blocks
)

// PartitionKind says what the logical devices of a replica have of a tensor.
type PartitionKind int

// The kinds of partitions.
const (
	PartitionSplit     PartitionKind = 0 // each a tile of it
	PartitionAssign    PartitionKind = 1 // one has it all, the others nothing
	PartitionReplicate PartitionKind = 2 // each has all of it
)

// Edge says what is beyond the edges of a tensor whose tiles have halos.
type Edge int

// The edges.
const (
	EdgeZero    Edge = 0 // zeros
	EdgeWrap    Edge = 1 // from the other end: -1 is n-1
	EdgeClamp   Edge = 2 // the last element, again and again: -1 is 0
	EdgeReflect Edge = 3 // mirrored at the last element: -1 is 1
	EdgeNone    Edge = 4 // nothing: there the result ends
)

// Choice is a program's yes or no, or neither.
type Choice int

// The choices.
const (
	DefaultChoice Choice = 0 // libdist's own
	Yes           Choice = 1
	No            Choice = 2
)

// native is how C says it: 1, 0 or -1; another number is libdist's to refuse.
func (c Choice) native() int {
	if c == No {
		return -1
	}
	return int32Of(int(c))
}

// NoTimeout is a wait without a limit, where 0 means the default.
const NoTimeout time.Duration = -1

// Limits of libdist.
const (
	MaxReplicas      = 256     // of one strategy in one process
	MaxContributions = 1024    // tensors in one sum, those of all replicas together
	MaxNDim          = 16      // dimensions of a tensor
	MaxTagBytes      = 48      // of a tag, its end included; a longer one is cut
	MaxMeshPositions = 1 << 20 // of a topology, and devices of one or of an assignment
)

// Version is the version of the library that runs: major * 10000 + minor * 100 + patch.
func Version() int { return cdist.Dist_version() }

// HasFeature says whether this build has an optional feature: "numa", "pinning".
func HasFeature(name string) bool { return cdist.Dist_has_feature(name) != 0 }

// CanonicalDevice writes a device's name in full: what name leaves out is as in CPU:0.
func CanonicalDevice(name string) (string, error) {
	return textOf(func(room []byte) error { return cdist.Dist_canonical_device(name, room, int64(len(room))) })
}

// textOf gives room for a text with an end mark, and takes the text out.
func textOf(write func(room []byte) error) (string, error) {
	return textIn(make([]byte, 256), write)
}

// textIn is textOf with room of another size.
func textIn(room []byte, write func(room []byte) error) (string, error) {
	if err := write(room); err != nil {
		return "", fromNative(err)
	}
	for i, b := range room {
		if b == 0 {
			return string(room[:i]), nil
		}
	}
	return string(room), nil
}

// int32Of keeps a number that C would cut to 32 bits out of range instead, so that libdist refuses it.
func int32Of(n int) int {
	return min(max(n, math.MinInt32), math.MaxInt32)
}

func intOf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
