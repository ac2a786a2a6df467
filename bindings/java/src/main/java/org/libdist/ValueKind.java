// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The kind of a value. */
public enum ValueKind {
    /** A tensor. */
    TENSOR(0xA01),
    /** One value for each replica. */
    PER_REPLICA(0xA02),
    /** One value for each replica, all known to be equal. */
    MIRRORED(0xA03),
    /** A list of values. */
    LIST(0xA04),
    /** A dictionary: keys are text, in order of their bytes. */
    DICT(0xA05),
    /** A variable, to be passed to a run. */
    VARIABLE(0xA06),
    /** Nothing; all such values count as the same value. */
    NONE(0xA07),
    /** Like a list, but the two kinds do not merge with each other. */
    TUPLE(0xA08),
    /** A text. */
    TEXT(0xA09),
    /** Anything of the program's own, passed through. */
    OBJECT(0xA0A),
    /** Rows of a larger tensor: values, indices, dense shape. */
    INDEXED_SLICES(0xA0B),
    /** Rows of different lengths: values, and one or more row splits. */
    RAGGED(0xA0C),
    /** Single elements of a tensor: indices, values, dense shape. */
    SPARSE(0xA0D),
    /** A tensor, with the part of it that each logical device of a replica holds. */
    SHARDED(0xA0E);

    final int code;

    ValueKind(int code) {
        this.code = code;
    }

    static ValueKind of(int code) {
        return switch (code) {
            case 0xA01 -> TENSOR;
            case 0xA02 -> PER_REPLICA;
            case 0xA03 -> MIRRORED;
            case 0xA04 -> LIST;
            case 0xA05 -> DICT;
            case 0xA06 -> VARIABLE;
            case 0xA07 -> NONE;
            case 0xA08 -> TUPLE;
            case 0xA09 -> TEXT;
            case 0xA0A -> OBJECT;
            case 0xA0B -> INDEXED_SLICES;
            case 0xA0C -> RAGGED;
            case 0xA0D -> SPARSE;
            case 0xA0E -> SHARDED;
            default -> throw new DistException(Status.INTERNAL, "ValueKind: libdist gave " + code);
        };
    }
}
