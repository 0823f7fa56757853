/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Firehose's miss protocol (src/ucp/firehose/fire.c, serve.c): one initiator
 * with one firehose, one target with two buckets. The initiator moves the
 * firehose by turns and puts through it; the target's memory events revoke.
 * Messages arrive in order, puts pass them. A put that reaches a registration
 * which is gone, or whose number is another's by now, is an error.
 */
#define NOBODY 255
#define FREE   0
#define MOVING 1
#define READY  2
#define REVOKED 3 /* not found any more, and still used */
#define WANTED 4

#ifdef MUTANT_MOVE_IN_USE
#define MAY_MOVE true
#else
#define MAY_MOVE (refs == 0)
#endif

#ifdef MUTANT_RELEASE_IN_USE
#define MAY_RELEASE true
#else
#define MAY_RELEASE (refs == 0)
#endif

mtype = { MOVE, GRANT, REVOKE }

chan to_target    = [3] of { mtype, byte, byte }; /* epoch, bucket */
chan to_initiator = [3] of { mtype, byte, byte }; /* epoch, registration */

/* A registration lives; each is used once, so that a stale key shows */
#define REGISTRATIONS 5
bool live[REGISTRATIONS];
byte next_registration;
byte underway[REGISTRATIONS]; /* puts that have left and not arrived */

/* Initiator */
byte state = FREE;
byte epoch;
byte key;
byte refs;      /* pieces that use it */
byte piece = NOBODY; /* the key by which a piece is going to put */
bool is_dirty;  /* completed here, and may not have arrived */
byte wanted = NOBODY;
byte moves, puts;

/* Target */
byte held = NOBODY; /* the registration that the firehose is attached to */
byte held_epoch;
bool is_struck;     /* doomed, and the peer has not been told */
byte events;

/* Puts arrive when they will; the completion here may come before that */
proctype network()
{
    byte i;
end:
    do
    :: atomic {
        select(i : 0 .. REGISTRATIONS - 1);
        if
        :: underway[i] > 0 ->
            assert(live[i]); /* else it writes what is another's by now */
            underway[i]--
        :: else
        fi
       }
    od
}

inline send_move(bucket)
{
#ifndef MUTANT_MOVE_WITHOUT_FLUSH
    /* ucp_firehose_peer_is_flushed() */
    !is_dirty || (underway[key] == 0);
#endif
    is_dirty = false;
    epoch++;
    to_target ! MOVE(epoch, bucket)
}

proctype initiator()
{
    byte number, registration;
end:
    do
    /* A hit */
    :: atomic { (state == READY) && (puts < 2) && (refs == 0) ->
        puts++;
        refs++;
        piece = key }
    /* It has its local bucket, and the put leaves */
    :: atomic { piece != NOBODY ->
        underway[piece]++;
        piece    = NOBODY;
        is_dirty = true }
    /* The put has completed here: its buffer may be changed */
    :: atomic { (refs > 0) && (piece == NOBODY) -> refs-- }
    /* A miss: only a firehose that nobody uses moves */
    :: atomic { ((state == FREE) || (state == READY)) && (moves < 2) &&
                MAY_MOVE -> moves++;
        wanted = moves % 2;
        state  = WANTED }
    :: state == WANTED ->
        send_move(wanted);
        state = MOVING
    /* What was revoked while in use is given back by the last that used it */
    :: (state == REVOKED) && MAY_RELEASE ->
        send_move(NOBODY);
        state = FREE
    :: to_initiator ? GRANT(number, registration) ->
        assert((state == MOVING) && (number == epoch));
        key   = registration;
        state = READY
    :: to_initiator ? REVOKE(number, registration) ->
        if
#ifndef MUTANT_REVOKE_ANY_STATE
        :: state == READY -> assert(number == epoch); state = REVOKED
#else
        :: state != FREE -> state = REVOKED
#endif
        :: else /* it has moved on: the move is the answer */
        fi
    od
}

/* Deregister: nothing under way may reach it */
inline drop(registration)
{
    live[registration] = false;
    assert(underway[registration] == 0)
}

proctype target()
{
    byte number, bucket;
end:
    do
    :: atomic { to_target ? MOVE(number, bucket) ->
        assert(number == held_epoch + 1);
        held_epoch = number;
        if
        :: held != NOBODY -> drop(held); held = NOBODY
        :: else
        fi;
#ifndef MUTANT_STRUCK_IS_KEPT
        is_struck = false; /* what is queued to be told means the old one */
#endif
        if
        :: bucket != NOBODY ->
            live[next_registration] = true;
            held = next_registration;
            next_registration++;
            to_initiator ! GRANT(held_epoch, held)
        :: else
        fi }
    /* A memory event: the bucket is out of the tables at once */
    :: atomic { (held != NOBODY) && !is_struck && (events < 2) ->
        events++;
        is_struck = true }
    /* The next progress */
    :: atomic { is_struck ->
        is_struck = false;
        assert(held != NOBODY);
#ifdef MUTANT_DROP_WITHOUT_ANSWER
        drop(held);
        held = NOBODY;
#endif
        to_initiator ! REVOKE(held_epoch, 0) }
    od
}

init
{
    atomic {
        run network();
        run initiator();
        run target()
    }
}
