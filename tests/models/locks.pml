/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Handing a lock on (kernel/sync/lock*.c): N takers take it, ROUNDS times each.
 * Checked: two takers never hold it at once; no taker waits for ever; and after
 * a holder has died, the next holder has been told so.
 *
 * Modelled: the word and every swap of it; the home's owner and queue; WAIT,
 * RELEASE, GRANT and PROBE as messages that take their time, overtake each
 * other, and are delivered twice; lost answers to swaps and GRANTs; takers that
 * give up waiting, or taking; processes and nodes that die while they hold
 * the lock. A claim is (taker, round). Not modelled: sharing; LMRs that are
 * freed; the order of the queue (it is first in, first out); time.
 *
 * TROUBLES says how much goes wrong in a run. Each of these macros breaks the
 * protocol; tests/models/run says which of them the checker must find:
 *
 *   NO_REFUSE    a taker that no longer wants the lock does not refuse a GRANT
 *   NO_PROBE     the home believes the word: it does not ask its holder
 *   NO_RELEASE   a holder that finds the word MANAGED sends no RELEASE
 *   LATE_BACK    a lock counts as managed until its word has been handed back
 *   NO_SWEEP     the home does not notice the end of a node
 *   NO_EARLY     a RELEASE by the holder in the word is lost if the home has not
 *                yet seen that holder there
 *   NO_BOTH      the same if that holder is in the queue as well: its RELEASE
 *                ends its place in the queue, and nothing else
 *   NO_ASK       the home does not ask a holder that was in the word, and refuses
 *                a GRANT, how it gave the lock back
 *   NO_DIED      if a taker never learns of the death that its GRANT reports, the
 *                next taker is not told either
 *   NO_HAD       a taker that had the lock refuses a repeated GRANT
 *   UNSURE_IS_NO a swap without an answer counts as not done
 *
 * With PROBE_ANY the home asks (PROBE) any owner, not only one that it found in
 * the word. The model without it shows that no taker that leaves the word alone
 * waits for ever.
 */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef TROUBLES
#define TROUBLES 2
#endif
#define TICKETS (N * ROUNDS)
#define NONE TICKETS       /* no ticket */

/* The word: FREE, MANAGED, DIED, or HELD by a ticket. */
#define FREE (TICKETS + 1)
#define MANAGED (TICKETS + 2)
#define DIED (TICKETS + 3)
/* HELD by the first taker, but false: copied from another lock, say. */
#define STALE (TICKETS + 4)
#define held(w) ((w) < TICKETS || (w) == STALE)
#define taker_of(t) ((t) == STALE -> 0 : (t) / ROUNDS)

/* How a claim is given back. */
#define CLEAN 1
#define DEAD 2
#define UNUSED 3

mtype = { AWAY, TAKING, WAITING, HOLDING, ENDING, LEFT };

byte word = FREE;
byte troubles = TROUBLES;

/* At the takers, by ticket. */
mtype claim[TICKETS] = AWAY;
bool told[TICKETS];         /* that a holder died */
bool had[TICKETS];          /* it was granted */
byte end_of[TICKETS];       /* LEFT: how */
bool alive[N] = true;       /* its node */

/* Messages in flight. */
bool wait_msg[TICKETS];
byte release_msg[TICKETS];
bool grant_msg[TICKETS];
bool refused_msg[TICKETS];

/* At the home. */
bool managed;
bool settling;
byte early[TICKETS];        /* RELEASE while settling: how */
bool died;
bool probe;
byte owner = NONE;
bool found;                 /* in the word */
bool owner_told;            /* it was granted with the news of a death */
byte queue[TICKETS];
byte queued;
bool swept[N];

/* For the assertions. */
byte inside;
bool broken;                /* a holder died, and no taker has been told */
byte finished;

inline find(t, at)
{
	at = 0;
	do
	:: at < queued && queue[at] != t -> at++
	:: else -> break
	od
}

inline unqueue(at)
{
	queued--;
	do
	:: at < queued -> queue[at] = queue[at + 1]; at++
	:: else -> break
	od;
	queue[queued] = 0;
	at = 0
}

/* The owner's claim is over. how: CLEAN, DEAD, UNUSED */
inline disown(how)
{
#ifndef NO_DIED
	died = died || how == DEAD || (how == UNUSED && owner_told);
#else
	died = died || how == DEAD;
#endif
	owner = NONE;
	owner_told = false;
	found = false;
	probe = false
}

/* The messages of one claim: each is served at any time. */
proctype messages(byte t)
{
	byte at;

end:	do
	/* At the home: WAIT, */
	:: atomic {
		wait_msg[t] ->
		/* It may be delivered again. */
		if
		:: wait_msg[t] = false
		:: troubles > 0 -> troubles--
		fi;
		if
		/* A node that counts as dead has no session. */
		:: swept[taker_of(t)] -> wait_msg[t] = false
		:: !swept[taker_of(t)] && owner == t -> grant_msg[t] = true
		:: else ->
			find(t, at);
			if
			:: at == queued -> queue[queued] = t; queued++
			:: else
			fi
		fi;
		at = 0
	}
	/* RELEASE, which the home answers, */
	:: atomic {
		release_msg[t] ->
		if
		:: owner == t -> disown(release_msg[t])
		:: else ->
			find(t, at);
			if
			:: at < queued ->
				unqueue(at);
#ifndef NO_BOTH
				if
				:: settling -> early[t] = release_msg[t]
				:: else
				fi
#endif
#ifndef NO_EARLY
			/* It may be the holder in the word. */
			:: at == queued && settling ->
				early[t] = release_msg[t]
			:: at == queued && !settling
#else
			:: else
#endif
			fi
		fi;
		release_msg[t] = 0;
		if
		:: claim[t] == ENDING || claim[t] == LEFT -> claim[t] = AWAY
		:: else
		fi;
		at = 0
	}
	/* and the refusal of a GRANT. */
	:: atomic {
		refused_msg[t] ->
		refused_msg[t] = false;
		if
#ifndef NO_ASK
		:: owner == t && found -> probe = true
		:: owner == t && !found -> disown(UNUSED)
#else
		:: owner == t -> disown(UNUSED)
#endif
		:: else
		fi
	}
	/* At the taker: GRANT, */
	:: atomic {
		grant_msg[t] ->
		if
		:: grant_msg[t] = false
		/* Its answer is lost, so the home sends it again. */
		:: troubles > 0 -> troubles--
		fi;
		if
		:: !alive[taker_of(t)] -> grant_msg[t] = false
		:: alive[taker_of(t)] && claim[t] == WAITING ->
			claim[t] = HOLDING;
			had[t] = true;
			told[t] = told[t] || (owner == t && owner_told)
		:: alive[taker_of(t)] && claim[t] == HOLDING
#ifndef NO_HAD
		/* It is giving the lock back: RELEASE will say how. */
		:: alive[taker_of(t)] && had[t] &&
		   (claim[t] == ENDING || claim[t] == LEFT)
#endif
		:: else ->
#ifndef NO_REFUSE
			refused_msg[t] = true
#endif
		fi
	}
	/* and giving the lock back in the background. */
	:: atomic {
		claim[t] == LEFT && !release_msg[t] && alive[taker_of(t)] ->
		if
		:: word == t ->
			word = (end_of[t] == DEAD -> DIED : FREE);
			claim[t] = AWAY
		:: else -> release_msg[t] = end_of[t]
		fi
	}
	od
}

/* Grants the lock to the first in the queue. */
active proctype grants()
{
	byte at;

end:	do
	:: atomic {
		managed && owner == NONE && queued > 0 ->
		owner = queue[0];
		owner_told = died;
		died = false;
		grant_msg[owner] = true;
		at = 0;
		unqueue(at)
	}
	od
}

/* The home's work on the word: one thing at a time. */
active proctype work()
{
	byte was, at;

end:	do
	/* Settle: swap the word for MANAGED, whatever it is. */
	:: atomic {
		!managed && queued > 0 ->
		was = word;
		word = MANAGED;
		settling = true
	};
	atomic {
		settling = false;
		managed = true;
		if
		:: was < TICKETS && early[was] ->
			died = died || early[was] == DEAD;
			was = FREE
		:: was >= TICKETS || !early[was]
		fi;
		at = 0;
		do
		:: at < TICKETS -> early[at] = 0; at++
		:: else -> break
		od;
		at = 0;
		if
		:: was == DIED -> died = true
		:: held(was) && swept[taker_of(was)] -> died = true
		:: held(was) && !swept[taker_of(was)] ->
			owner = was;
			found = true;
			find(was, at);
			if
			:: at < queued ->
				/* The taker did not know that its swap was done. */
				unqueue(at);
				grant_msg[was] = true
			:: else -> probe = true
			fi
		:: else
		fi;
		was = 0;
		at = 0
	}
#ifndef NO_PROBE
	:: atomic {
		probe && owner != NONE && alive[taker_of(owner)] ->
		if
		:: owner == STALE -> disown(UNUSED)
		:: owner != STALE && claim[owner] == AWAY -> disown(UNUSED)
		:: owner != STALE && claim[owner] == LEFT && !had[owner] ->
			disown(end_of[owner])
		/* Also if it was granted: a RELEASE will follow. */
		:: else -> probe = false
		fi
	}
#endif
#ifdef PROBE_ANY
	/* While others wait, the home asks any owner. */
	:: atomic { managed && owner != NONE && queued > 0 && !probe -> probe = true }
#endif
	/* Hand back: the lock stops being managed before the swap. */
#ifndef LATE_BACK
	:: atomic { managed && owner == NONE && queued == 0 -> managed = false };
	   atomic {
		if
		:: died -> word = DIED
		:: else -> word = FREE
		fi;
		died = false
	   }
#else
	:: atomic {
		managed && owner == NONE && queued == 0 ->
		if
		:: died -> word = DIED
		:: else -> word = FREE
		fi;
		died = false
	   };
	   managed = false
#endif
	od
}

#ifndef NO_SWEEP
/* The home counts a node as dead: some time after it died. */
proctype sweep(byte i)
{
	byte at;

end:	atomic {
		!alive[i] ->
		swept[i] = true;
		if
		:: owner != NONE && taker_of(owner) == i -> disown(DEAD)
		:: else
		fi;
		do
		:: at < queued && taker_of(queue[at]) == i -> unqueue(at)
		:: at < queued && taker_of(queue[at]) != i -> at++
		:: else -> break
		od
	}
}
#endif

inline die()
{
	/* The home notices later; the node sends nothing any more. */
	alive[i] = false;
	claim[t] = AWAY;
	goto dead
}

proctype taker(byte i)
{
	byte round, t;
	bool unsure;

	do
	:: round == ROUNDS -> break
	:: else ->
		t = i * ROUNDS + round;
		unsure = false;
		claim[t] = TAKING;
again:		atomic {
			if
			:: word == FREE || word == DIED || word == t ->
				/* No taker overtakes the queue of a managed lock. */
				assert(!managed);
				told[t] = (word == DIED) || (word == t && told[t]);
				word = t;
				if
				:: claim[t] = HOLDING
				:: troubles > 0 ->
					/* The answer is lost. */
					troubles--;
					unsure = true
				fi
			:: else ->
				/* Only the home can have replaced our ticket. */
				claim[t] = WAITING;
				wait_msg[t] = true
			fi
		}
		if
		:: claim[t] == TAKING && unsure ->
			if
#ifndef UNSURE_IS_NO
			:: goto again
			/* The word is out of reach: the caller gets an error. */
			:: atomic {
				end_of[t] = (told[t] -> DEAD : UNUSED);
				claim[t] = LEFT
			   };
			   goto next
#else
			:: atomic { claim[t] = AWAY }; goto next
#endif
			fi
		:: else
		fi;
		if
		:: claim[t] == WAITING ->
			if
			:: claim[t] == HOLDING
			:: atomic {
				claim[t] == WAITING && troubles > 0 ->
				troubles--;
				end_of[t] = (told[t] -> DEAD : UNUSED);
				claim[t] = LEFT
			   };
			   goto next
			:: atomic {
				claim[t] == WAITING && troubles > 0 ->
				troubles--;
				die()
			   }
			fi
		:: else
		fi;
		/* This taker holds the lock. */
		atomic {
			assert(inside == 0);
			assert(!broken || told[t]);
			inside++;
			broken = false
		}
		if
		:: atomic { inside-- }
		:: atomic {
			troubles > 0 ->
			troubles--;
			inside--;
			broken = true;
			end_of[t] = DEAD;
			claim[t] = LEFT
		   };
		   goto next
		:: atomic {
			troubles > 0 ->
			troubles--;
			inside--;
			broken = true;
			die()
		   }
		fi;
		atomic {
			claim[t] = ENDING;
			if
			:: word == t -> word = FREE; claim[t] = AWAY
			:: else ->
#ifndef NO_RELEASE
				release_msg[t] = CLEAN
#else
				claim[t] = AWAY
#endif
			fi
		}
		claim[t] == AWAY;
next:		round++
	od;
dead:	atomic { finished++ }
}

init
{
	byte i;

	atomic {
		if
		:: true
		:: troubles > 0 -> troubles--; word = STALE
		fi;
		for (i : 0 .. TICKETS - 1) {
			run messages(i)
		}
		for (i : 0 .. N - 1) {
#ifndef NO_SWEEP
			run sweep(i);
#endif
			run taker(i)
		}
	}
	/* No taker waits for ever. */
	finished == N
}
