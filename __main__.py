from stacks.program import main

main()
