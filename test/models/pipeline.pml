/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The pipeline's protocol (src/ucp/pipeline): one sender, one receiver, two
 * messages one after the other, each with a piece that is copied and FRAGS
 * fragments that are written, at most DEPTH registered and at most WRITES being
 * written at a time; or read by its receiver in READS pieces at once, where MATCH
 * has offered keys. Messages arrive in order, puts and gets pass them. A receive
 * is posted before or after its message comes, may be canceled and may be too
 * short; either end fails to register, the sender fails by itself, and with DEATHS
 * one end dies. When nothing moves any more every request of an end that lives is
 * complete and nothing of it is registered.
 */
#ifndef FRAGS
#define FRAGS 3
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef WRITES
#define WRITES 1
#endif
#define READS 2
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#define MESSAGES 2
#define PIECES   (FRAGS + 1) /* number 0 is copied */
#define ALL      (MESSAGES * PIECES)
#define NOBODY   255

mtype = { MATCH, ACK, SHORT, READY, DATA, FIN, ABORT, DONE }

chan to_receiver = [8] of { mtype, byte, byte, bool };
chan to_sender   = [8] of { mtype, byte, byte, bool };

/* A put by the number of its piece among all */
#define NO_PUT 0
#define POSTED 1
#define READ   2 /* complete here: its bytes have left */
#define LANDED 3 /* and a flush is */
byte put[ALL];
bool arrived[ALL]; /* the bytes are in the receiver's buffer */
bool source_registered[ALL], target_registered[ALL];

/* A read of one of a message's READS pieces */
#define NO_GET  0
#define ASKED   1
#define TAKEN   2 /* its bytes have left the sender */
#define GOT     3
#define REFUSED 4
byte get[MESSAGES * READS];
bool offered[MESSAGES], awaited[MESSAGES]; /* registered as a whole there, here */

/* Which of a message's pieces the control messages may be about */
#define IDLE     0
#define SENT     1
#define ACKED    2
byte sender = IDLE;
byte sent = NOBODY;   /* message of the request */
byte next_message;
byte send_next, send_done, send_ops, send_waits;
bool send_failed;     /* its status is an error: it ends without operations */
bool sender_dead, receiver_lost; /* lost: the sender was told */
byte failures;

#define UNPOSTED 0
#define WAITS    1
#define MATCHED  2
#define READING  3
byte receiver = UNPOSTED;
byte received;        /* message that the receive is for */
byte recv_next, recv_done, recv_pieces, recv_registered;
bool open[PIECES];    /* pieces begun and not over */
bool unexpected;      /* MATCH of `received` came and waits */
bool has_offer;       /* it came with a key */
bool recv_failed;     /* a read is waited for, and nothing else */
bool is_canceled, receiver_dead, sender_lost;

#define AT(message, piece) ((message) * PIECES + (piece))
#define READ_OF(message, piece) ((message) * READS + (piece))

/* A put to or from what is registered no more is an error; what a dead sender
 * left behind is refused by the adapter */
proctype network(byte i)
{
end:
    do
    :: atomic { put[i] == POSTED ->
        assert(source_registered[i] || sender_dead);
        put[i] = READ }
    :: atomic { put[i] == READ ->
        if
        :: !receiver_dead && target_registered[i] -> arrived[i] = true
        :: else -> assert(receiver_dead || sender_dead)
        fi;
        put[i] = LANDED }
    od
}

/* The same of a read; what is refused, by whatever, moves nothing */
proctype reader(byte m; byte r)
{
    byte p;
end:
    do
    :: atomic { get[READ_OF(m, r)] == ASKED ->
        if
        :: offered[m] && !sender_dead -> get[READ_OF(m, r)] = TAKEN
        :: (failures < FAILURES) -> failures++; get[READ_OF(m, r)] = REFUSED
        :: !offered[m] || sender_dead ->
            assert(sender_dead || receiver_dead);
            get[READ_OF(m, r)] = REFUSED
        fi }
    :: atomic { get[READ_OF(m, r)] == TAKEN ->
        assert(awaited[m] || receiver_dead);
        for (p : 0 .. PIECES - 1) {
            if
            :: p % READS == r -> arrived[AT(m, p)] = true
            :: else
            fi
        }
        p = 0;
        get[READ_OF(m, r)] = GOT }
    od
}

/* ucp_pipeline_send_check(): an end only without operations */
inline send_end_failed()
{
    byte p;
    for (p : 0 .. PIECES - 1) {
        source_registered[AT(sent, p)] = false
    }
    p = 0;
    offered[sent] = false;
    if
    :: (sender == ACKED) && !receiver_lost ->
        to_receiver ! ABORT(sent, 0, false)
    :: else
    fi;
    sender      = IDLE;
    sent        = NOBODY;
    send_failed = false;
    send_waits  = 0;
    send_ops    = 0
}

inline send_check()
{
    if
    :: (sender != IDLE) && (send_done == PIECES) && !send_failed ->
        assert(send_ops == 0);
        sender = IDLE;
        sent   = NOBODY
    :: else
    fi
}

/* What is about another request is dropped: ucp_pipeline_request_find() */
#define IS_OURS(message) ((sender != IDLE) && ((message) == sent))

inline send_ready(message, piece, has_key)
{
    if
    :: IS_OURS(message) && (sender == ACKED) && !send_failed &&
       (piece == send_next) ->
        send_next++;
        if
        :: has_key ->
            source_registered[AT(sent, piece)] = true;
            send_waits++
        :: true -> /* no key, or nothing to be had here */
#ifdef MUTANT_UNREGISTERED_IS_LEFT
            skip
#else
            to_receiver ! DATA(sent, piece, false);
            send_done++
#endif
        fi;
        send_check()
    :: else
    fi
}

/* When a fragment is over for the sender */
#ifdef MUTANT_FIN_WITHOUT_FLUSH
#define PUT_IS_OVER(at) (put[at] >= READ)
#else
#define PUT_IS_OVER(at) (put[at] == LANDED)
#endif

proctype send()
{
    mtype type;
    byte message, piece;
    bool has_key;
end:
    do
    :: atomic { !sender_dead && (sender == IDLE) && !receiver_lost &&
                (next_message < MESSAGES) ->
        sent = next_message;
        next_message++;
        send_next = 0;
        send_done = 0;
        sender    = SENT;
        if
        :: offered[sent] = true
        :: true
        fi;
        to_receiver ! MATCH(sent, 0, offered[sent]) }
    :: atomic { !sender_dead && !receiver_lost && nempty(to_sender) ->
        to_sender ? type(message, piece, has_key);
        if
        :: (type == ACK) && IS_OURS(message) && (sender == SENT) ->
            offered[sent] = false;
            sender    = ACKED;
            send_next = 1;
            send_done = 1;
            to_receiver ! DATA(sent, 0, false)
        :: (type == SHORT) && IS_OURS(message) ->
#ifndef MUTANT_OFFER_STAYS
            offered[sent] = false;
#endif
            send_done = PIECES;
            send_check()
#ifndef MUTANT_DONE_IS_LEFT
        :: (type == DONE) && IS_OURS(message) && offered[sent] ->
            offered[sent] = false;
            send_done = PIECES;
            send_check()
#endif
        :: type == READY -> send_ready(message, piece, has_key)
        :: else
        fi;
        piece = 0; message = 0; has_key = false; type = 0 }
    /* ucp_pipeline_send_write(): a fragment that waits, in any order */
#ifndef MUTANT_WAITING_IS_LEFT
    :: atomic { !sender_dead && (sender == ACKED) && !send_failed &&
                (send_waits > 0) && (send_ops < WRITES) ->
        select(piece : 1 .. PIECES - 1);
        if
        :: source_registered[AT(sent, piece)] &&
           (put[AT(sent, piece)] == NO_PUT) ->
            put[AT(sent, piece)] = POSTED;
            send_waits--;
            send_ops++
        :: else
        fi;
        piece = 0 }
#endif
    /* A put and its flush are over; without a peer both end with an error */
    :: atomic { !sender_dead && (send_ops > 0) ->
        select(piece : 1 .. PIECES - 1);
        if
        :: source_registered[AT(sent, piece)] &&
           ((put[AT(sent, piece)] >= READ) && receiver_lost ||
            PUT_IS_OVER(AT(sent, piece))) ->
            send_ops--;
            if
            :: receiver_lost -> send_failed = true
            :: else
            fi;
            if
            :: !send_failed ->
                source_registered[AT(sent, piece)] = false;
                to_receiver ! FIN(sent, piece, false);
                send_done++
            :: else -> put[AT(sent, piece)] = LANDED;
                source_registered[AT(sent, piece)] = false
            fi;
            send_check()
        :: else
        fi;
        piece = 0 }
    /* It fails by itself, which it does only once it has been answered */
    :: atomic { !sender_dead && (sender == ACKED) && !send_failed &&
                (failures < FAILURES) ->
        failures++;
        send_failed = true }
    :: atomic { !sender_dead && (sender != IDLE) && send_failed &&
#ifndef MUTANT_END_WITH_OPERATIONS
                (send_ops == 0)
#else
                true
#endif
                -> send_end_failed() }
#if DEATHS
    :: atomic { !sender_dead && receiver_dead && !receiver_lost ->
        receiver_lost = true;
        if
#ifndef MUTANT_LOST_SEND_WAITS
        :: sender != IDLE -> send_failed = true
#endif
        :: else
        fi }
    :: atomic { !sender_dead && !receiver_dead -> sender_dead = true }
#endif
    od
}

inline recv_drop()
{
    for (piece : 0 .. PIECES - 1) {
        target_registered[AT(received, piece)] = false;
        open[piece] = false
    }
    piece = 0;
    recv_pieces     = 0;
    recv_registered = 0
}

/* The receive is over, whatever came of it */
inline recv_end()
{
    recv_drop();
    receiver    = UNPOSTED;
    unexpected  = false;
    has_offer   = false;
    recv_failed = false;
    received++
}

/* ucp_pipeline_recv_advance() */
inline recv_advance()
{
    do
    :: (recv_next < PIECES) &&
#ifndef MUTANT_NO_DEPTH
       (recv_pieces < DEPTH)
#else
       true
#endif
       ->
        open[recv_next] = true;
        recv_pieces++;
        if
        :: target_registered[AT(received, recv_next)] = true;
           recv_registered++;
           assert(recv_registered <= DEPTH);
           to_sender ! READY(received, recv_next, true)
        :: (failures < FAILURES) ->
           failures++;
#ifndef MUTANT_KEYLESS_IS_LEFT
           to_sender ! READY(received, recv_next, false)
#endif
        fi;
        recv_next++
    :: else -> break
    od
}

inline recv_ask()
{
    receiver  = MATCHED;
    recv_next = 1;
    recv_done = 0;
    open[0]     = true;
    recv_pieces = 1;
    to_sender ! ACK(received, 0, false);
    recv_advance()
}

inline recv_match()
{
    if
    :: received == 0 -> /* the receive is too short */
#ifndef MUTANT_TRUNCATED_IN_SILENCE
        to_sender ! SHORT(received, 0, false);
#endif
        recv_end()
    :: true -> recv_ask()
    :: has_offer ->
        receiver          = READING;
        awaited[received] = true;
        get[READ_OF(received, 0)] = ASKED;
        get[READ_OF(received, 1)] = ASKED
#ifdef MUTANT_DONE_BEFORE_READ
        ; to_sender ! DONE(received, 0, false)
#endif
    fi
}

/* ucp_pipeline_read_over(): the last one is */
#define IS_OVER(message, piece) \
    ((get[READ_OF(message, piece)] == GOT) || \
     (get[READ_OF(message, piece)] == REFUSED))
#ifdef MUTANT_FIRST_READ_ENDS
#define ARE_OVER(message) (IS_OVER(message, 0) || IS_OVER(message, 1))
#else
#define ARE_OVER(message) (IS_OVER(message, 0) && IS_OVER(message, 1))
#endif
#ifdef MUTANT_ONE_REFUSED_IS_LEFT
#define IS_REFUSED(message) (get[READ_OF(message, 1)] == REFUSED)
#else
#define IS_REFUSED(message) ((get[READ_OF(message, 0)] == REFUSED) || \
                             (get[READ_OF(message, 1)] == REFUSED))
#endif

inline recv_read_over()
{
    awaited[received] = false;
    if
    :: recv_failed -> recv_end()
    :: !recv_failed && IS_REFUSED(received) ->
        has_offer = false;
#ifndef MUTANT_REFUSED_IS_LEFT
        recv_ask()
#else
        receiver = MATCHED
#endif
    :: !recv_failed && !IS_REFUSED(received) ->
        for (piece : 0 .. PIECES - 1) {
            assert(arrived[AT(received, piece)]) /* no lost piece */
        }
        piece = 0;
#ifndef MUTANT_DONE_BEFORE_READ
        to_sender ! DONE(received, 0, false);
#endif
        recv_end()
    fi
}

inline recv_piece_over()
{
    if
    :: target_registered[AT(received, piece)] ->
        target_registered[AT(received, piece)] = false;
        recv_registered--
    :: else
    fi;
    open[piece] = false;
    recv_pieces--;
    recv_done++;
    recv_advance();
    if
    :: recv_done == PIECES ->
        for (piece : 0 .. PIECES - 1) {
            assert(arrived[AT(received, piece)]) /* no lost fragment */
        }
        recv_end()
    :: else
    fi
}

#define IS_ITS(message) ((receiver == MATCHED) && ((message) == received))

proctype recv()
{
    mtype type;
    byte message, piece;
    bool has_key;
end:
    do
    :: atomic { !receiver_dead && (receiver == READING) && ARE_OVER(received) ->
        recv_read_over() }
    :: atomic { !receiver_dead && (receiver == UNPOSTED) && !sender_lost &&
                (received < MESSAGES) ->
        if
#ifndef MUTANT_UNEXPECTED_IS_LEFT
        :: unexpected -> recv_match()
#endif
        :: else -> receiver = WAITS
        fi }
    :: atomic { !receiver_dead && !is_canceled &&
#ifndef MUTANT_CANCEL_MATCHED
                (receiver == WAITS)
#else
                (receiver != UNPOSTED)
#endif
                ->
        is_canceled = true;
        recv_drop();
        receiver = UNPOSTED }
    :: atomic { !receiver_dead && !sender_lost && nempty(to_receiver) ->
        to_receiver ? type(message, piece, has_key);
        if
        :: type == MATCH ->
            assert(message == received);
            has_offer = has_key;
            if
            :: receiver == WAITS -> recv_match()
            :: else -> unexpected = true
            fi
        :: IS_ITS(message) && (type == DATA) && open[piece] ->
            arrived[AT(received, piece)] = true;
            recv_piece_over()
        :: IS_ITS(message) && (type == FIN) && open[piece] ->
            recv_piece_over()
#ifndef MUTANT_ABORT_IS_LEFT
        :: IS_ITS(message) && (type == ABORT) -> recv_end()
#endif
        :: else
        fi;
        message = 0; piece = 0; type = 0; has_key = false }
#if DEATHS
    :: atomic { !receiver_dead && sender_dead && !sender_lost ->
        sender_lost = true;
        unexpected  = false;
        if
        :: receiver == WAITS -> recv_end()
#ifndef MUTANT_LOST_RECEIVE_WAITS
        :: receiver == MATCHED -> recv_end()
#endif
#ifdef MUTANT_LOST_READ_ENDS
        :: receiver == READING ->
            awaited[received] = false;
            recv_end()
#else
        :: receiver == READING -> recv_failed = true
#endif
        :: else
        fi }
    :: atomic { !sender_dead && !receiver_dead -> receiver_dead = true }
#endif
    od
}

/* When nothing moves any more */
proctype rest()
{
    byte i;
    timeout;
    atomic {
        for (i : 0 .. ALL - 1) {
            assert(sender_dead || !source_registered[i]);
            assert(receiver_dead || !target_registered[i])
        }
        for (i : 0 .. MESSAGES - 1) {
            assert(sender_dead || !offered[i]);
            assert(receiver_dead || !awaited[i])
        }
        assert(sender_dead || (sender == IDLE));
        assert(receiver_dead || (receiver == UNPOSTED));
        assert(sender_dead || receiver_dead || (received == MESSAGES))
    }
}

init
{
    byte i;
    atomic {
        for (i : 0 .. ALL - 1) {
            if
            :: (i % PIECES) > 0 -> run network(i)
            :: else
            fi
        }
        for (i : 0 .. MESSAGES - 1) {
            run reader(i, 0);
            run reader(i, 1)
        }
        i = 0;
        run send();
        run recv();
        run rest()
    }
}
