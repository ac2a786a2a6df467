// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The collective of an exception, or of a row of {@link Strategy#stragglers}. */
public enum Collective {
    /** None. */
    NONE(0),
    /** {@link Replica#allReduce}. */
    ALL_REDUCE(0x201),
    /** {@link Replica#broadcast}. */
    BROADCAST(0x202),
    /** {@link Replica#barrier}. */
    BARRIER(0x203),
    /** {@link Replica#mergeCall}, and operations that work like it. */
    MERGE_CALL(0x204),
    /** The end of the replica function, where all replicas also wait for each other. */
    RETURN(0x205),
    /** {@link Replica#reduceToRoot}. */
    REDUCE(0x206),
    /** {@link Replica#reduceScatter}. */
    REDUCE_SCATTER(0x207),
    /** {@link Replica#allGather}. */
    ALL_GATHER(0x208),
    /** {@link Replica#gatherToRoot}. */
    GATHER(0x209),
    /** {@link Replica#scatterFromRoot}. */
    SCATTER(0x20A),
    /** {@link Replica#allToAll}. */
    ALL_TO_ALL(0x20B),
    /** {@link Replica#scan}. */
    SCAN(0x20C),
    /** {@link Replica#permute}. */
    PERMUTE(0x20D),
    /** {@link Replica#reduceApply}. */
    REDUCE_APPLY(0x20E),
    /** {@link Replica#haloExchange}. */
    HALO_EXCHANGE(0x20F),
    /** {@link Replica#reshard}. */
    RESHARD(0x210),
    /** A constant of a later version. */
    OTHER(-1);

    final int code;

    Collective(int code) {
        this.code = code;
    }

    /** Numbers of later versions count as OTHER. */
    static Collective of(int code) {
        return switch (code) {
            case 0 -> NONE;
            case 0x201 -> ALL_REDUCE;
            case 0x202 -> BROADCAST;
            case 0x203 -> BARRIER;
            case 0x204 -> MERGE_CALL;
            case 0x205 -> RETURN;
            case 0x206 -> REDUCE;
            case 0x207 -> REDUCE_SCATTER;
            case 0x208 -> ALL_GATHER;
            case 0x209 -> GATHER;
            case 0x20A -> SCATTER;
            case 0x20B -> ALL_TO_ALL;
            case 0x20C -> SCAN;
            case 0x20D -> PERMUTE;
            case 0x20E -> REDUCE_APPLY;
            case 0x20F -> HALO_EXCHANGE;
            case 0x210 -> RESHARD;
            default -> OTHER;
        };
    }
}
