/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The deregistration queue, dq.c: producers that never wait, one consumer.
 * What was pushed is popped once, in the order of its tickets, and whole; what
 * finds the queue full is counted as lost. One ring: with ALONE that of the
 * thread that pushes without a compare-and-swap.
 */

#if defined(ALONE) && !defined(MUTANT_ALONE_BY_TWO)
#define PRODUCERS 1
#else
#define PRODUCERS 2
#endif
#ifndef PUSHES
#define PUSHES 2     /* of each */
#endif
#define LENGTH 2

byte head, tail, lost;
byte ticket[LENGTH];
byte first[LENGTH], second[LENGTH];  /* an entry, written in two steps */
byte pushed, popped;
byte seen[5];        /* of each entry, by its number from 1 */
byte ended;

proctype producer(byte number)
{
    byte pushes = PUSHES;
    byte h, t;

    do
    :: pushes == 0 -> break
    :: pushes > 0 ->
        pushes--;
        h = head;
again:
        t = ticket[h % LENGTH];
        if
        :: t == h ->
#ifdef ALONE
            head = h + 1;
#else
            if
            :: d_step { head == h -> head = h + 1 }
            :: d_step { head != h -> h = head } goto again
            fi;
#endif
#ifdef MUTANT_TICKET_FIRST
            ticket[h % LENGTH] = h + 1;
#endif
            first[h % LENGTH]  = number;
            second[h % LENGTH] = number;
#ifndef MUTANT_TICKET_FIRST
            ticket[h % LENGTH] = h + 1;
#endif
            pushed++
        :: t < h -> lost++
        :: t > h -> h = head; goto again
        fi;
        number = number + PRODUCERS
    od;
    ended++
}

active proctype consumer()
{
    byte a, b;

    ticket[1] = 1;
    atomic {
        run producer(1);
#if PRODUCERS > 1
        run producer(2)
#endif
    }
    do
    :: ticket[tail % LENGTH] == tail + 1 ->
#ifdef MUTANT_FREED_BEFORE_READ
        ticket[tail % LENGTH] = tail + LENGTH;
#endif
        a = first[tail % LENGTH];
        b = second[tail % LENGTH];
        assert((a == b) && (a != 0));
        assert(seen[a] == 0);
        seen[a] = 1;
        popped++;
        first[tail % LENGTH]  = 0;
        second[tail % LENGTH] = 0;
#ifndef MUTANT_FREED_BEFORE_READ
        ticket[tail % LENGTH] = tail + LENGTH;
#endif
        tail++
    :: (ended == PRODUCERS) && (ticket[tail % LENGTH] != tail + 1) -> break
    od;
    assert(popped == pushed);
    assert(popped + lost == PRODUCERS * PUSHES)
}
