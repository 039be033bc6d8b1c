import holt

with holt.Machine.create(persistent=False) as machine:
    machine.write_file("/root/primes.py", "print([n for n in range(2, 30) if all(n % d for d in range(2, n))])")
    print(machine.exec(["python3", "/root/primes.py"]).text)
